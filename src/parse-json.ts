import { getHeapStatistics } from 'node:v8';
import { foreignJson } from './bounds/anyone.ts';

/**
 * The most bytes that V8 takes for each value of a document: an empty array, a name and its entry in a
 * dictionary.
 */
const bytesOfValue = 64;
/** The same if a schema checks the document and reports a problem with each value. 340 were measured. */
const bytesOfCheckedValue = 512;
/**
 * The most bytes for each character, of the text and of a copy of its strings. One character beyond Latin-1
 * doubles the size of each.
 */
const bytesOfCharacter = 4;

/** The most characters of a small document. */
const smallDocument = 8192;

const quote = 0x22;
const backslash = 0x5c;
/** `{` and `[` */
const openings: ReadonlySet<number> = new Set([0x7b, 0x5b]);
/** `}` and `]` */
const closings: ReadonlySet<number> = new Set([0x7d, 0x5d]);
/** `,` and `:` */
const separators: ReadonlySet<number> = new Set([0x2c, 0x3a]);

/** A document from outside is not read because it would take too much of the heap. */
export class DocumentTooHeavy extends Error {
  override readonly name: string = 'DocumentTooHeavy';
}

/** A document from outside is not read because it is nested so deep that recursive code would fail. */
export class DocumentTooDeep extends DocumentTooHeavy {
  override readonly name = 'DocumentTooDeep';
}

/** How many bytes of the heap a document may take. */
export function heaviestDocument(): number {
  return Math.floor(getHeapStatistics().heap_size_limit * foreignJson.bytes.document);
}

/**
 * Parses a document from outside. Three bytes of it can become sixty in the heap, so its size in the heap is
 * estimated first. Throws a `SyntaxError`, {@link DocumentTooHeavy}, or its kind {@link DocumentTooDeep}.
 */
export function parseForeignJson(text: string): unknown {
  return text.length > smallDocument ? weighedJson(text).json : smallJson(text);
}

/** A small document, such as an event of a stream, cannot be too heavy, so it is not weighed. */
function smallJson(text: string): unknown {
  const json: unknown = JSON.parse(text);
  const { levels } = foreignJson.count;
  // Each level takes two brackets.
  if (text.length > 2 * levels && isDeeper(json, levels)) throw tooDeep();
  return json;
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
  const { weight, levels } = measured(text, ofValue, most);
  if (weight >= most) {
    throw new DocumentTooHeavy('the document has too many values, or is too large, to be read');
  }
  // The parser of V8 is not recursive, so it takes any depth. Text that is not JSON is a `SyntaxError`.
  const json: unknown = JSON.parse(text);
  if (levels > foreignJson.count.levels) throw tooDeep();
  return { json, weight };
}

function tooDeep(): DocumentTooDeep {
  return new DocumentTooDeep(`the document has more than ${foreignJson.count.levels} levels`);
}

/** Whether a value that was JSON has more levels of lists and objects than `most`. */
export function isDeeper(value: unknown, most: number): boolean {
  let level = [value].filter(isNested);
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > most) return true;
    const next: object[] = [];
    for (const each of level) for (const inner of Object.values(each)) if (isNested(inner)) next.push(inner);
    level = next;
  }
  return false;
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** The most bytes of the heap that a document takes, including its text. */
export function weightOf(text: string): number {
  return measured(text, bytesOfValue, Number.POSITIVE_INFINITY).weight;
}

/**
 * The most bytes of the heap that a document takes, including its text, and how deep it is nested. Stops
 * counting at `most` bytes.
 */
function measured(text: string, ofValue: number, most: number): { weight: number; levels: number } {
  let weight = bytesOfCharacter * text.length;
  let level = 0;
  let levels = 0;
  let at = 0;
  while (at < text.length && weight < most) {
    const code = text.charCodeAt(at);
    if (code === quote) at = stringEnd(text, at);
    else {
      if (openings.has(code)) {
        weight += ofValue;
        level += 1;
        levels = Math.max(levels, level);
      } else if (closings.has(code)) level -= 1;
      else if (separators.has(code)) weight += ofValue;
      at += 1;
    }
  }
  return { weight, levels };
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
