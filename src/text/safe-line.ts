import { hasServiceMessage, withoutNumberSigns } from './escape.ts';
import { bar, type Line, lines, linesOf, type Redact, type Value } from './printable.ts';

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
  kind: 'error' | 'warning';
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
