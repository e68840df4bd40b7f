import type { Element, Pattern } from './pattern.ts';

/** The bytes ended before it was decided. */
export const open = -1;
/** It does not stand there. */
const no = 0;

/** Backslashes in a row that are read as one escape: a text that was put into JSON five times has 31. */
export const longestRun = 32;
/** `%2525252f` is a slash that was escaped four times. */
const longestRepeat = 4;
/** Line breaks in a row inside base64. */
const longestGap = 4;

const backslash = 0x5c;
const percent = 0x25;
const letterU = 0x75;
const letterN = 0x6e;
const letterR = 0x72;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/**
 * Where the pattern ends that begins at `from`: the end of the longest reading, 0 where it does not stand there, or {@link open}. Each
 * character may be written as it is, escaped as in JSON, percent-encoded, or one of these several times over.
 *
 * @param last whether no more bytes come after these
 */
export function endOf(pattern: Pattern, bytes: Uint8Array, from: number, last: boolean): number {
  const end = endFrom(pattern, 0, bytes, from, last);
  return end === open && last ? no : end;
}

function endFrom(pattern: Pattern, first: number, bytes: Uint8Array, from: number, last: boolean): number {
  const { elements, wraps } = pattern;
  let at = from;
  for (let index = first; index < elements.length; index++) {
    const element = elements[index] as Element;
    if (wraps && index > 0) at = afterLineBreaks(bytes, at);
    if (at === open) return open;
    if (element.byte === percent && bytes[at] === percent)
      return percentSign(pattern, index, bytes, at, last);
    const end = elementEnd(element, bytes, at);
    if (end <= 0) return end;
    at = end;
  }
  return at;
}

/** A percent sign of the secret: itself or the beginning of its own escape. What follows decides. */
function percentSign(pattern: Pattern, index: number, bytes: Uint8Array, at: number, last: boolean): number {
  let longest = endFrom(pattern, index + 1, bytes, at + 1, last);
  for (let repeat = 0; repeat < longestRepeat; repeat++) {
    const digits = at + 1 + 2 * repeat;
    const code = hexadecimal(bytes, digits, 2);
    if (code === open && !last) return open;
    if (code !== percent) break;
    const end = endFrom(pattern, index + 1, bytes, digits + 2, last);
    if (end === open && !last) return open;
    longest = Math.max(longest, end);
  }
  return longest;
}

/** Where one character ends. */
function elementEnd(element: Element, bytes: Uint8Array, at: number): number {
  if (at >= bytes.length) return open;
  const byte = bytes[at];
  if (byte === element.byte || byte === element.other) return at + 1;
  if (element.byte === -1 && byte !== backslash) return severalBytesEnd(element, bytes, at);
  return byte === backslash || byte === percent ? escapedEnd(element, bytes, at) : no;
}

/** One that is written with backslashes or percent signs. A backslash that is itself escaped counts as one. */
function escapedEnd(element: Element, bytes: Uint8Array, from: number): number {
  let at = from;
  for (let run = 0; run <= longestRun; run++) {
    if (at >= bytes.length) return open;
    const byte = bytes[at];
    if (byte === backslash) {
      at++;
      continue;
    }
    if (at > from && element.mayBeEscaped && (byte === element.byte || byte === element.other)) return at + 1;
    if (byte === percent) {
      const end = percentEnd(bytes, at, element.byte, element.other);
      if (end !== no) return end;
      at = percentEnd(bytes, at, backslash, backslash);
      if (at <= 0) return at;
      continue;
    }
    if (at === from) return no;
    if (byte === element.letter) return at + 1;
    if (byte !== letterU) return no;
    const code = hexadecimal(bytes, at + 1, 4);
    if (code === open) return open;
    if (code !== backslash) return unitsEnd(element, bytes, at);
    at += 5;
  }
  return no;
}

/** `%XX`, or `%25XX`, which is that escaped again, of one of two bytes. */
function percentEnd(bytes: Uint8Array, at: number, wanted: number, other: number): number {
  for (let repeat = 0; repeat < longestRepeat; repeat++) {
    const digits = at + 1 + 2 * repeat;
    const code = hexadecimal(bytes, digits, 2);
    if (code === open) return open;
    if (code === wanted || code === other) return digits + 2;
    if (code !== percent) return no;
  }
  return no;
}

/** UTF-8, of which each byte may be percent-encoded. */
function severalBytesEnd(element: Element, bytes: Uint8Array, from: number): number {
  let at = from;
  for (const wanted of element.bytes) {
    if (at >= bytes.length) return open;
    const end =
      bytes[at] === percent ? percentEnd(bytes, at, wanted, wanted) : bytes[at] === wanted ? at + 1 : no;
    if (end <= 0) return end;
    at = end;
  }
  return at;
}

/** `\uXXXX`, for some characters two of them; the first `u` is at `from`. */
function unitsEnd(element: Element, bytes: Uint8Array, from: number): number {
  let at = from;
  const { length } = element.units;
  for (let index = 0; index < length; index++) {
    if (index > 0) {
      const run = at;
      while (bytes[at] === backslash && at - run <= longestRun) at++;
      if (at >= bytes.length) return open;
      if (at === run) return no;
    }
    if (bytes[at] !== letterU) return no;
    const code = hexadecimal(bytes, at + 1, 4);
    if (code === open) return open;
    if (code !== element.units[index] && (length > 1 || code !== element.other)) return no;
    at += 5;
  }
  return at;
}

/** Past line breaks, as they are or escaped. */
function afterLineBreaks(bytes: Uint8Array, from: number): number {
  let at = from;
  for (let gap = 0; gap < longestGap; gap++) {
    const end = lineBreakEnd(bytes, at);
    if (end === open) return open;
    if (end === no) return at;
    at = end;
  }
  return at;
}

function lineBreakEnd(bytes: Uint8Array, at: number): number {
  const byte = bytes[at];
  if (byte === lineFeed || byte === carriageReturn) return at + 1;
  if (byte === percent) return percentEnd(bytes, at, lineFeed, carriageReturn);
  if (byte !== backslash) return no;
  let after = at;
  while (bytes[after] === backslash && after - at <= longestRun) after++;
  if (after >= bytes.length) return open;
  return bytes[after] === letterN || bytes[after] === letterR ? after + 1 : no;
}

/** The number in so many digits; undefined where they are none. */
function hexadecimal(bytes: Uint8Array, from: number, digits: number): number | undefined {
  let value = 0;
  for (let at = from; at < from + digits; at++) {
    const byte = bytes[at];
    if (byte === undefined) return open;
    const digit = digitOf(byte);
    if (digit === undefined) return undefined;
    value = value * 16 + digit;
  }
  return value;
}

function digitOf(byte: number): number | undefined {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : undefined;
}

/** No secret is written like this. */
const nothing = -2;
/** Not told by a look at one escape. */
export const anything = -3;

const controls: Record<number, number> = { 98: 0x08, 102: 0x0c, 110: 0x0a, 114: 0x0d, 116: 0x09 };

/** The byte that the escape at `at` stands for; {@link open}, {@link nothing} or {@link anything}. */
export function escapedByte(bytes: Uint8Array, at: number): number {
  if (bytes[at] === percent) {
    const code = hexadecimal(bytes, at + 1, 2) ?? nothing;
    return code === percent || code === backslash ? anything : code;
  }
  let after = at;
  while (bytes[after] === backslash) after++;
  const byte = bytes[after];
  if (byte === undefined) return open;
  if (byte === percent) return anything;
  if (byte === letterU) {
    const code = hexadecimal(bytes, after + 1, 4) ?? nothing;
    return code === backslash || code > 0x7f ? anything : code;
  }
  const isAlphanumeric = (byte >= 0x30 && byte <= 0x39) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a);
  return isAlphanumeric ? (controls[byte] ?? nothing) : byte;
}
