import { Writable } from 'node:stream';
import { styleText } from 'node:util';
import { printedText } from '../bounds/anyone.ts';
import { printableJson } from './escape.ts';
import {
  type Annotation,
  annotationLine,
  ascii,
  cut,
  lines,
  Printable,
  type Redact,
  type Span,
  safeLine,
} from './printable.ts';

/** What can be printed. A string is foreign text with any number of lines. */
export type Content = string | Printable;

interface Sink {
  write(characters: string): unknown;
  isTTY?: boolean | undefined;
  columns?: number | undefined;
}

/**
 * The only way to write to a stream that people read. Nothing in the printed text controls a terminal or a CI
 * system, except Offsite's own words.
 */
export class Output {
  readonly #sink: Sink;
  readonly #redact: Redact;
  readonly #isAscii: boolean;

  /**
   * @param redact removes known secrets
   * @param isUtf8 whether the sink shows UTF-8, if it is a terminal; otherwise Offsite's own words are in
   * ASCII
   */
  constructor(sink: Sink, redact: Redact = (text) => text, { isUtf8 = true } = {}) {
    this.#sink = sink;
    this.#redact = redact;
    this.#isAscii = this.isTerminal && !isUtf8;
  }

  /** Whether a person watches it live. */
  get isTerminal(): boolean {
    return this.#sink.isTTY === true;
  }

  /** The width of the terminal in cells; undefined if it is none. */
  get columns(): number | undefined {
    return this.#sink.columns;
  }

  /** Prints the content on its own lines. */
  print(content: Content): void {
    this.#sink.write(`${this.shown(content)}\n`);
  }

  /** Prints a document for programs: the same value, in visible characters. */
  json(value: unknown): void {
    // Redacts each text and name separately, so that the result stays JSON whatever a secret looks like.
    const redacted = (_name: string, member: unknown) => {
      if (typeof member === 'string') return this.#redact(member);
      if (typeof member !== 'object' || member === null || Array.isArray(member)) return member;
      return Object.fromEntries(Object.entries(member).map(([name, inner]) => [this.#redact(name), inner]));
    };
    this.#sink.write(`${printableJson(JSON.stringify(value, redacted, 2))}\n`);
  }

  /**
   * Prints an event of a log.
   *
   * @param line its JSON, on one line
   */
  log(line: string): void {
    this.#sink.write(`${printableJson(this.#redact(line))}\n`);
  }

  /** Prints a message that GitHub Actions shows next to a step. */
  annotation(annotation: Annotation): void {
    this.#sink.write(`${annotationLine(annotation, this.#redact)}\n`);
  }

  /** The characters that `print` writes, for a display that positions them itself. */
  shown(content: Content): string {
    return shownLines(content, this.#redact, (span) => this.#styled(span)).join('\n');
  }

  #styled({ text: own, ours, style }: Span): string {
    const text = this.#isAscii && ours ? ascii(own) : own;
    // Node decides whether the stream takes styles, by the stream and the environment.
    return style !== undefined && this.#sink instanceof Writable
      ? styleText(style, text, { stream: this.#sink })
      : text;
  }
}

/** The same as `shown`, without styles, for files. */
export function plainText(content: Content, redact: Redact = (text) => text): string {
  return shownLines(content, redact, ({ text }) => text).join('\n');
}

function shownLines(content: Content, redact: Redact, shown: (span: Span) => string): string[] {
  const printable = content instanceof Printable ? content : lines(content);
  return printable.lines(redact).map((line) => redact(safeLine(line).map(shown).join('')).trimEnd());
}

/** The destination for pino's lines of JSON, one per event. */
export function logDestination(output: Output): { write(line: string): void } {
  return {
    write: (line) => output.log(line.length > printedText.bytes.logLine ? shortened(line) : line.trimEnd()),
  };
}

/** The line may contain a service's answer or a program's output. */
function shortened(line: string): string {
  return JSON.stringify(JSON.parse(line), (_, value: unknown) => {
    if (typeof value === 'string') return cut(value, printedText.bytes.line);
    return Array.isArray(value) ? value.slice(0, printedText.count.lines) : value;
  });
}
