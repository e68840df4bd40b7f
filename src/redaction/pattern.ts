import { beginningOf } from './beginning.ts';
import { isAlphanumeric, type Wanted } from './escape.ts';
import type { Gap } from './gap.ts';

/** One character of a pattern: its byte, and another byte that also matches. -1 if it takes several bytes. */
export interface Element extends Wanted {
  /** If it takes several bytes: each of its spellings. */
  spellings: readonly (readonly Wanted[])[];
  /** What may precede it. */
  gap: Gap;
}

/** A sequence of characters, each written in any of the ways that decode.ts reads. */
export interface Pattern {
  elements: readonly Element[];
  /** How many of its characters are enough to match. */
  least: number;
  /** The index of its secret. */
  secret: number;
}

const slash = '/'.charCodeAt(0);
const plus = '+'.charCodeAt(0);
const dash = '-'.charCodeAt(0);
const underscore = '_'.charCodeAt(0);
const space = ' '.charCodeAt(0);

/** Fewer letters of base64 than this could be anything. */
const shortestCore = 6;

/** The ways to encode a text as a whole. */
type Form = (text: string) => Element[];

/**
 * The encodings of a secret: itself, numbers, and base64, whose letters depend on how many bytes precede it.
 */
const forms: readonly Form[] = [
  plain,
  (text) => hexadecimal(Buffer.from(text)),
  (text) => hexadecimal(wide(text)),
  (text) => decimal(Buffer.from(text)),
  ...[0, 1, 2].flatMap((before): Form[] => [
    (text) => base64(Buffer.from(text), before),
    (text) => base64(wide(text), before),
  ]),
];

/** For text that is not ASCII: the bytes of UTF-16, whose zeros decode.ts skips. */
const wideForms: readonly Form[] = [
  (text) => rawBytes(Buffer.from(text, 'utf16le')),
  (text) => rawBytes(Buffer.from(text, 'utf16le').swap16()),
];

/**
 * The patterns that find a secret.
 *
 * @param ignoresCase whether letters match in either case
 */
export function patternsOf(value: string, secret: number, ignoresCase = false): Pattern[] {
  const beginning = beginningOf(value);
  const isAscii = Buffer.byteLength(value) === value.length;
  const patterns = (isAscii ? forms : [...forms, ...wideForms]).map((form) => ({
    elements: ignoresCase ? form(value).map(eitherCase) : form(value),
    least: form(beginning).length,
    secret,
  }));
  return patterns.filter(({ least }) => least > 0);
}

/**
 * The number of backslashes depends on how often they were escaped, which is unknown. So the pattern leaves
 * them out.
 */
function plain(text: string): Element[] {
  return [...text.matchAll(/(\\*)([^\\])/gu)].map(([, backslashes = '', character = '']) => {
    const element = elementOf(character, 'zeros');
    return backslashes === '' ? element : { ...element, mayBeEscaped: true };
  });
}

function elementOf(character: string, gap: Gap): Element {
  const code = character.codePointAt(0) ?? 0;
  if (code > 0x7f) {
    const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
    const spellings = [
      [...Buffer.from(character)].map((byte) => exact(byte, false)),
      [exact(code, true)],
      units.map((unit) => exact(unit, true)),
    ];
    return { ...exact(-1, false), spellings, gap };
  }
  return {
    byte: code,
    // As in HTML forms.
    other: code === space ? plus : code,
    mayBeEscaped: code > 0x1f && !isAlphanumeric(code),
    spellings: [],
    gap,
  };
}

function exact(code: number, isEscaped: boolean): Wanted {
  return { byte: code, other: code, mayBeEscaped: false, isEscaped };
}

function rawBytes(bytes: Buffer): Element[] {
  return [...bytes.filter((byte) => byte !== 0)].map((byte) => ({
    ...exact(byte, false),
    spellings: [],
    gap: 'zeros',
  }));
}

/** UTF-16 without the zeros at its ends, where the two byte orders differ for ASCII. */
function wide(text: string): Buffer {
  return Buffer.from(text, 'utf16le').subarray(0, -1);
}

function hexadecimal(bytes: Buffer): Element[] {
  return [...bytes.toString('hex')].map((digit, index) => ({
    ...elementOf(digit, index % 2 === 0 ? 'separators' : 'nothing'),
    other: digit.toUpperCase().charCodeAt(0),
  }));
}

function decimal(bytes: Buffer): Element[] {
  return [...bytes].flatMap((byte) =>
    [...String(byte)].map((digit, index) => elementOf(digit, index === 0 ? 'numbers' : 'nothing')),
  );
}

/**
 * The letters that no neighbour can change, in either alphabet. `before`: how many bytes are before the
 * secret in its group of three.
 */
function base64(secret: Buffer, before: number): Element[] {
  const written = Buffer.concat([Buffer.alloc(before), secret]).toString('base64');
  // A letter carries 6 bits. The first letters share theirs with the bytes before, the last one with the
  // bytes after.
  const firstWhole = Math.ceil((before * 8) / 6);
  const endWhole = Math.floor(((before + secret.length) * 8) / 6);
  const core = written.slice(firstWhole, endWhole);
  return core.length < shortestCore ? [] : [...core].map(base64Element);
}

function base64Element(letter: string): Element {
  const element = elementOf(letter, 'lines');
  if (element.byte === plus) return { ...element, other: dash };
  if (element.byte === slash) return { ...element, other: underscore };
  return element;
}

const caseBit = 0x20;

function eitherCase(element: Element): Element {
  const isLetter = element.byte > 0x39 && isAlphanumeric(element.byte);
  return isLetter ? { ...element, other: element.byte ^ caseBit } : element;
}
