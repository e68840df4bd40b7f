import type { styleText } from 'node:util';
import { printedText } from '../bounds/anyone.ts';
import { escaped, hasServiceMessage, withoutNumberSigns } from './escape.ts';

export type Style = Parameters<typeof styleText>[0];

/** A piece of a line. `ours` marks Offsite's own words; everything else is foreign text, and is escaped. */
export interface Span {
  readonly text: string;
  readonly ours: boolean;
  readonly style?: Style;
}

export type Line = readonly Span[];

/** Removes known secrets, before anything is cut or escaped. */
export type Redact = (text: string) => string;

/**
 * Lines for people, which keep Offsite's words and foreign text apart. Only this folder creates it and
 * converts it to characters.
 */
export class Printable {
  readonly lines: (redact: Redact) => Line[];

  constructor(lines: (redact: Redact) => Line[]) {
    this.lines = lines;
  }
}

/** What a line may contain. A string is always foreign text. */
export type Value = string | number | Printable;

/**
 * A template whose literal parts are Offsite's own words. A string in it stays on its line, escaped and no
 * longer than {@link printedText} allows. A `Printable` of several lines keeps them, indented like the line
 * that contains it.
 *
 * @example text`batch ${id}: ${count} trials`
 */
export function text(parts: TemplateStringsArray, ...values: Value[]): Printable {
  return new Printable((redact) => {
    const page: Span[][] = [[]];
    const add = ([first = [], ...rest]: Line[], indent: string) => {
      page.at(-1)?.push(...first);
      for (const line of rest) page.push(indent === '' ? [...line] : [{ text: indent, ours: true }, ...line]);
    };
    for (const [index, part] of parts.entries()) {
      add(ownLines(part), '');
      const value = values[index];
      if (value !== undefined) add(linesOf(value, redact), indentOf(page.at(-1) ?? []));
    }
    return page;
  });
}

/** Offsite's own text, with any number of lines: help, or a file that Offsite writes. */
export function ours(own: string): Printable {
  return new Printable(() => ownLines(own));
}

/** Foreign text that may have several lines: the first is printed in place, each further one behind a bar. */
export function lines(foreign: string): Printable {
  return new Printable((redact) => {
    const [first = '', ...rest] = linesIn(redact(foreign));
    return [[theirs(first)], ...rest.map((line) => barred(line))];
  });
}

/** Like {@link lines}, but with every line behind a bar, as for output of programs. */
export function quoted(foreign: string): Printable {
  return new Printable((redact) => linesIn(redact(foreign)).map((line) => barred(line)));
}

/** How much of a text to show: lines from its beginning and its end, and characters of each line. */
export interface Excerpt {
  first: number;
  last: number;
  characters: number;
  /** Finds further lines to show, wherever they are. Returns their indexes in ascending order. */
  besides?: ((lines: readonly string[]) => readonly number[]) | undefined;
}

/** The beginning and the end of a text, every line behind a bar. */
export function excerpt(foreign: string, { first, last, characters, besides }: Excerpt): Printable {
  return new Printable((redact) => {
    const all = redact(foreign).trimEnd().split(/\r?\n/);
    const shown = (line: string) => barred(line, characters);
    // Leaving out a single line saves nothing: the note takes a line too.
    if (all.length - first - last <= 1) return all.map(shown);
    const end = all.length - last;
    const between = (besides?.(all) ?? []).filter((at) => at >= first && at < end);
    let next = first;
    const gapTo = (at: number): Line[] => {
      const [from, count] = [next, at - next];
      next = at + 1;
      if (count <= 1) return all.slice(from, at).map(shown);
      return [[bar, { text: `… ${count} lines left out …`, ours: true, style: 'dim' }]];
    };
    return [
      ...all.slice(0, first).map(shown),
      ...between.flatMap((at) => [...gapTo(at), shown(all[at] ?? '')]),
      ...gapTo(end),
      ...all.slice(end).map(shown),
    ];
  });
}

/** One line behind a bar. Line breaks in it are shown as escapes. */
export function quotedLine(foreign: string, characters: number, style?: Style): Printable {
  return new Printable((redact) => [barred(redact(foreign), characters, style)]);
}

/** A text in full, every line behind a bar, for a text that the user asked for by name. */
export function whole(foreign: string): Printable {
  return new Printable((redact) => {
    const all = redact(foreign).split(/\r?\n/);
    return all.map((line) => barred(line, Number.POSITIVE_INFINITY));
  });
}

export function styled(style: Style, value: Value): Printable {
  return new Printable((redact) =>
    linesOf(value, redact).map((line) => line.map((span) => ({ ...span, style }))),
  );
}

/** A part of a list; `undefined` or `false` for one that is not there. */
export type Optional<Part> = Part | undefined | false;

/** The parts of a list that are there. */
export function present<Part>(parts: readonly Optional<Part>[]): Part[] {
  return parts.flatMap((part) => (part === undefined || part === false ? [] : [part]));
}

/** Puts the values below one another. */
export function stack(values: readonly Optional<Value>[]): Printable {
  return new Printable((redact) => present(values).flatMap((value) => linesOf(value, redact)));
}

/** Puts the values next to one another. */
export function joined(values: readonly Value[], separator: string): Printable {
  const rest = values.slice(1).map((value) => text`${ours(separator)}${value}`);
  return values
    .slice(0, 1)
    .concat(rest)
    .reduce<Printable>((all, value) => text`${all}${value}`, ours(''));
}

/** The lines of a value within a line. */
export function linesOf(value: Value, redact: Redact): Line[] {
  if (value instanceof Printable) return value.lines(redact);
  return [[{ text: escaped(cut(redact(String(value)), printedText.bytes.value)), ours: false }]];
}

/** Precedes a line of foreign text, so that the line does not begin with that text. */
export const bar: Span = { text: '│ ', ours: true, style: 'dim' };

function ownLines(own: string): Line[] {
  return own.split('\n').map((line) => [{ text: escapedButTabs(line), ours: true }]);
}

function linesIn(foreign: string): string[] {
  // Lines that are not shown are not processed: a text may have many megabytes.
  const all = foreign.trimEnd().split(/\r?\n/);
  const spare = all.length - printedText.count.lines;
  if (spare <= 0) return all;
  const half = printedText.count.lines / 2;
  return [...all.slice(0, half), `… ${spare} lines left out …`, ...all.slice(-half)];
}

function theirs(line: string, characters: number = printedText.bytes.line): Span {
  return { text: escapedButTabs(cut(line, characters)), ours: false };
}

function barred(line: string, characters?: number, style?: Style): Line {
  const shown = theirs(line, characters);
  return [bar, style === undefined ? shown : { ...shown, style }];
}

function escapedButTabs(line: string): string {
  return line.split('\t').map(escaped).join('\t');
}

function indentOf(line: Line): string {
  const whole = line.map((span) => (span.ours ? span.text : '.')).join('');
  return /^ */.exec(whole)?.[0] ?? '';
}

/** Offsite's own marks, each with an ASCII one of the same width. */
const marks: Record<string, string> = {
  '✓': '+',
  '✗': 'x',
  '○': 'o',
  '│': '|',
  '…': '~',
  '·': '-',
  '–': '-',
  '×': 'x',
  '█': '=',
  '░': '.',
};

/** Offsite's own words for a terminal that shows ASCII only. */
export function ascii(own: string): string {
  return own.replace(/[^\p{ASCII}]/gu, (character) => marks[character] ?? '?');
}

/** Whether the terminal of a process shows UTF-8, by its locale. */
export function showsUtf8(env: NodeJS.ProcessEnv, platform: NodeJS.Platform = process.platform): boolean {
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG;
  // macOS and Windows show UTF-8 whatever the environment says.
  if (locale === undefined || locale === '') return platform !== 'linux';
  return /utf-?8/i.test(locale);
}

/**
 * How a line may begin with foreign text: a letter, a number, a path; or one mark followed by something other
 * than a mark. CI systems read lines that begin with two marks, such as `::`, `##`, `---` and `+++`, as
 * commands.
 */
const beginsLikeText = /^(?:[\p{L}\p{N}_]|~?\/|\.{1,2}\/|[^\s\p{L}\p{N}](?=[\p{L}\p{N}\s]|$))/u;

/** Whether a CI system could take a line for a command because of its foreign text. */
export function needsBar(line: Line): boolean {
  const first = line.findIndex(({ text }) => text.trim() !== '');
  if (first === -1) return false;
  const foreign = line.findIndex(({ ours }, index) => index >= first && !ours);
  // One mark of Offsite's could be the first of two.
  if (textOf(line.slice(first, foreign === -1 ? undefined : foreign)).trimStart().length > 1) return false;
  return !beginsLikeText.test(textOf(line).trimStart());
}

/** The line in a form that is safe to write anywhere. */
export function safeLine(line: Line): Line {
  const begun = needsBar(line) ? [bar, ...line] : line;
  if (!hasServiceMessage(textOf(begun))) return begun;
  return begun.map((span) => (span.ours ? span : { ...span, text: withoutNumberSigns(span.text) }));
}

function textOf(line: Line): string {
  return line.map(({ text }) => text).join('');
}

/** A message from Offsite to GitHub Actions. */
export interface Annotation {
  kind: 'error' | 'warning' | 'notice';
  title: Value;
  message: Value;
}

/** The workflow command. Foreign text is inside its title and its message, and cannot end either. */
export function annotationLine({ kind, title, message }: Annotation, redact: Redact): string {
  const property = data(plain(title, redact)).replaceAll(':', '%3A').replaceAll(',', '%2C');
  return `::${kind} title=${property}::${data(plain(message, redact))}`;
}

function plain(value: Value, redact: Redact): string {
  return linesOf(typeof value === 'string' ? lines(value) : value, redact)
    .map((line) =>
      safeLine(line)
        .map(({ text }) => text)
        .join(''),
    )
    .join('\n');
}

function data(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

/** The first characters of a text, and its length. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return `${text.slice(0, limit).replace(/[\ud800-\udbff]$/, '')}… (${text.length} characters)`;
}
