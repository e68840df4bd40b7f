import { getHeapStatistics } from 'node:v8';
import { foreignJson } from './bounds/anybody.ts';

/**
 * Bytes that V8 takes at most for each value of a document: an empty array, a name and its place in a
 * dictionary.
 */
const bytesOfValue = 64;
/**
 * The same where a schema checks the document: it says of each value what is wrong with it. 340 were
 * measured.
 */
const bytesOfCheckedValue = 512;
/**
 * The text, and the strings in it once more; a single character beyond Latin-1 makes each of them twice as
 * large.
 */
const bytesOfCharacter = 4;

const quote = 0x22;
const backslash = 0x5c;
/** `{`, `[`, `,` and `:` */
const marks: ReadonlySet<number> = new Set([0x7b, 0x5b, 0x2c, 0x3a]);

/** Why a document from outside is not parsed: it would take too much of the heap. */
export class DocumentTooHeavy extends Error {
  override readonly name = 'DocumentTooHeavy';
}

/** Bytes of the heap that a document may take. */
export function heaviestDocument(): number {
  return Math.floor(getHeapStatistics().heap_size_limit * foreignJson.bytes.document);
}

/**
 * Parses a document that somebody else wrote. Three bytes of it can come to sixty in the heap, so it is
 * weighed first. Throws a `SyntaxError`, or {@link DocumentTooHeavy}.
 */
export function parseForeignJson(text: string): unknown {
  return weighedJson(text).json;
}

/**
 * The same of a document that is then checked by a schema, which may find something wrong with each of its
 * values.
 */
export function parseCheckedJson(text: string): unknown {
  return weighedJson(text, bytesOfCheckedValue).json;
}

/** Bytes that the text of a document may have, whatever is in it. */
export function longestDocument(): number {
  return Math.floor(heaviestDocument() / bytesOfCharacter);
}

/** The same as {@link parseForeignJson}, with the bytes of the heap that the document takes at most. */
export function weighedJson(text: string, ofValue = bytesOfValue): { json: unknown; weight: number } {
  const most = heaviestDocument();
  const weight = weightOf(text, ofValue, most);
  if (weight >= most) {
    throw new DocumentTooHeavy('the document has too many values, or is too large, to be read');
  }
  return { json: JSON.parse(text), weight };
}

/**
 * Bytes of the heap that a document takes at most, itself included; `most` or more where it is that heavy.
 */
function weightOf(text: string, ofValue: number, most: number): number {
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
