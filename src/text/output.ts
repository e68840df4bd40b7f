import { Writable } from 'node:stream';
import { styleText } from 'node:util';
import { type Annotation, annotationLine } from './annotation.ts';
import { printableJson } from './escape.ts';
import { type Line, lines, Printable, type Redact } from './printable.ts';
import { safeLine } from './safe-line.ts';

/** What can be printed. A string is somebody else's text, of any number of lines. */
export type Content = string | Printable;

interface Sink {
  write(characters: string): unknown;
  isTTY?: boolean | undefined;
}

/**
 * The one way to a stream that people read. Whatever is printed, nothing in it steers a terminal or speaks to
 * a CI system but what this program itself says.
 */
export class Output {
  readonly #sink: Sink;
  readonly #redact: Redact;

  /** @param redact takes known secrets out */
  constructor(sink: Sink, redact: Redact = (text) => text) {
    this.#sink = sink;
    this.#redact = redact;
  }

  /** Whether a person looks at it as it is written. */
  get isTerminal(): boolean {
    return this.#sink.isTTY === true;
  }

  /** On lines of its own. */
  print(content: Content): void {
    this.#sink.write(`${this.shown(content)}\n`);
  }

  /** A document for programs: the same value, in characters that may be shown. */
  json(value: unknown): void {
    // Text by text, so that it stays JSON whatever a secret looks like.
    const redacted = (_name: string, member: unknown) =>
      typeof member === 'string' ? this.#redact(member) : member;
    this.#sink.write(`${printableJson(JSON.stringify(value, redacted, 2))}\n`);
  }

  /** An event of a log. @param line its JSON, on one line */
  log(line: string): void {
    this.#sink.write(`${printableJson(this.#redact(line))}\n`);
  }

  /** What GitHub Actions shows beside a step. */
  annotation(annotation: Annotation): void {
    this.#sink.write(`${annotationLine(annotation, this.#redact)}\n`);
  }

  /** The characters that `print` writes, for a display that places them itself. */
  shown(content: Content): string {
    return shownLines(content, this.#redact, (text, style) => this.#styled(text, style)).join('\n');
  }

  #styled(text: string, style: Line[number]['style']): string {
    // Whether the stream takes styles, by what it is and by the environment, is for Node to say.
    return style !== undefined && this.#sink instanceof Writable
      ? styleText(style, text, { stream: this.#sink })
      : text;
  }
}

/** The same without styles, for files. */
export function plainText(content: Content, redact: Redact = (text) => text): string {
  return shownLines(content, redact, (text) => text).join('\n');
}

function shownLines(
  content: Content,
  redact: Redact,
  style: (text: string, style: Line[number]['style']) => string,
): string[] {
  const printable = content instanceof Printable ? content : lines(content);
  return printable.lines(redact).map((line) =>
    redact(
      safeLine(line)
        .map((span) => style(span.text, span.style))
        .join(''),
    ).trimEnd(),
  );
}
