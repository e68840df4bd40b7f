import { getHeapStatistics } from 'node:v8';
import { foreignJson } from '../bounds/anyone.ts';

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
const colon = 0x3a;
const blank = 0x20;
/** `,` and `:` */
const separators: ReadonlySet<number> = new Set([0x2c, colon]);

/** A document from outside is not read because it would take too much of the heap. */
export class DocumentTooHeavy extends Error {
  override readonly name: string = 'DocumentTooHeavy';
}

/** A document from outside is not read because it is nested so deep that recursive code would fail. */
export class DocumentTooDeep extends DocumentTooHeavy {
  override readonly name = 'DocumentTooDeep';
}

/** A document from outside is not read because it has too many values, or too many different names. */
export class TooManyValues extends DocumentTooHeavy {
  override readonly name = 'TooManyValues';
  /** The member of the document in which they are too many, as it is written. */
  readonly member: string | undefined;

  constructor(message: string, member: string | undefined) {
    super(message);
    this.member = member;
  }
}

/**
 * The most values of a document, with their names, and the most different names. A name that was not seen
 * before takes the parser ten times as long as another value.
 */
export interface MostValues {
  values: number;
  names: number;
  /** Characters of a number. The time to read it grows with the square of them. */
  number: number;
}

/** The largest heap of this process, in bytes. To ask for it takes as long as to read some events. */
export const heapLimit = getHeapStatistics().heap_size_limit;

/** How many bytes of the heap a document may take. */
export function heaviestDocument(): number {
  return Math.floor(heapLimit * foreignJson.bytes.document);
}

/**
 * Parses a document from outside. Three bytes of it can become sixty in the heap, so its size in the heap is
 * estimated first. Throws a `SyntaxError`, {@link DocumentTooHeavy}, or its kinds {@link DocumentTooDeep} and
 * {@link TooManyValues}.
 *
 * @param most more than a small document has
 */
export function parseForeignJson(text: string, most?: MostValues): unknown {
  return text.length > smallDocument ? weighedJson(text, bytesOfValue, most).json : smallJson(text);
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
export function weighedJson(
  text: string,
  ofValue = bytesOfValue,
  most?: MostValues,
): { json: unknown; weight: number } {
  const heaviest = heaviestDocument();
  const { weight, levels } = measured(text, ofValue, heaviest, most);
  if (weight >= heaviest) {
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
 * counting at `heaviest` bytes. Throws {@link TooManyValues}.
 */
function measured(
  text: string,
  ofValue: number,
  heaviest: number,
  most?: MostValues,
): { weight: number; levels: number } {
  let weight = bytesOfCharacter * text.length;
  let level = 0;
  let levels = 0;
  let values = 0;
  const names = new Set<string>();
  let at = 0;
  /** The last string, if it is not yet known to be a name. */
  let string: [from: number, to: number] | undefined;
  let member: typeof string;
  /** Characters of the number or the word that is being read. */
  let bare = 0;
  while (at < text.length && weight < heaviest) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      const end = stringEnd(text, at);
      string = [at, end];
      bare = 0;
      at = end;
      continue;
    }
    if (openings.has(code) || separators.has(code)) {
      weight += ofValue;
      values += 1;
      if (most) {
        if (code === colon && string) {
          names.add(text.slice(...string));
          if (level === 1) member = string;
        }
        if (values > most.values || names.size > most.names) throw tooMany(most, values, text, member);
      }
      string = undefined;
      bare = 0;
    } else if (most && code > blank && !closings.has(code)) {
      bare += 1;
      if (bare > most.number)
        throw new TooManyValues(`a number has more than ${most.number} characters`, undefined);
    }
    if (openings.has(code)) {
      level += 1;
      levels = Math.max(levels, level);
    } else if (closings.has(code)) level -= 1;
    at += 1;
  }
  return { weight, levels };
}

function tooMany(
  most: MostValues,
  values: number,
  text: string,
  member: [from: number, to: number] | undefined,
): TooManyValues {
  const what = values > most.values ? `${most.values} values` : `${most.names} different names`;
  const name = member && text.slice(member[0] + 1, member[1] - 1);
  return new TooManyValues(`the document has more than ${what}`, name);
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
