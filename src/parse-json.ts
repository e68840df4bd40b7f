import { getHeapStatistics } from 'node:v8';
import { foreignJson } from './bounds/anybody.ts';

/**
 * The most bytes that V8 takes for each value of a document: an empty array, a name and its entry in a
 * dictionary.
 */
const bytesOfValue = 64;
/** The same if a schema checks the document and reports a problem with each value. 340 were measured. */
const bytesOfCheckedValue = 512;
/** The text, and a copy of the strings in it; one character beyond Latin-1 doubles the size of each. */
const bytesOfCharacter = 4;

const quote = 0x22;
const backslash = 0x5c;
/** `{`, `[`, `,` and `:` */
const marks: ReadonlySet<number> = new Set([0x7b, 0x5b, 0x2c, 0x3a]);

/** A document from outside is not parsed because it would take too much of the heap. */
export class DocumentTooHeavy extends Error {
  override readonly name = 'DocumentTooHeavy';
}

/** How many bytes of the heap a document may take. */
export function heaviestDocument(): number {
  return Math.floor(getHeapStatistics().heap_size_limit * foreignJson.bytes.document);
}

/**
 * Parses a document from outside. Three bytes of it can become sixty in the heap, so its size in the heap is
 * estimated first. Throws a `SyntaxError`, or {@link DocumentTooHeavy}.
 */
export function parseForeignJson(text: string): unknown {
  return weighedJson(text).json;
}

/**
 * The same for a document that a schema checks afterwards, which may report a problem with each of its
 * values.
 */
export function parseCheckedJson(text: string): unknown {
  return weighedJson(text, bytesOfCheckedValue).json;
}

/** How many bytes the text of a document may have, whatever it contains. */
export function longestDocument(): number {
  return Math.floor(heaviestDocument() / bytesOfCharacter);
}

/** The same as {@link parseForeignJson}. `weight` is the most bytes of the heap that the document takes. */
export function weighedJson(text: string, ofValue = bytesOfValue): { json: unknown; weight: number } {
  const most = heaviestDocument();
  const weight = weightOf(text, ofValue, most);
  if (weight >= most) {
    throw new DocumentTooHeavy('the document has too many values, or is too large, to be read');
  }
  return { json: JSON.parse(text), weight };
}

/** The most bytes of the heap that a document takes, including its text. Stops counting at `most`. */
export function weightOf(text: string, ofValue = bytesOfValue, most = Number.POSITIVE_INFINITY): number {
  let weight = bytesOfCharacter * text.length;
  let at = 0;
  while (at < text.length && weight < most) {
    const code = text.charCodeAt(at);
    if (code === quote) at = stringEnd(text, at);
    else {
      if (marks.has(code)) weight += ofValue;
      at += 1;
    }
  }
  return weight;
}

function stringEnd(text: string, from: number): number {
  let at = text.indexOf('"', from + 1);
  while (at !== -1 && isEscaped(text, at)) at = text.indexOf('"', at + 1);
  return at === -1 ? text.length : at + 1;
}

function isEscaped(text: string, at: number): boolean {
  let before = at - 1;
  while (text.charCodeAt(before) === backslash) before -= 1;
  return (at - 1 - before) % 2 === 1;
}
