import { lines, linesOf, type Redact, type Value } from './printable.ts';
import { safeLine } from './safe-line.ts';

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
