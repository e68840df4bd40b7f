import {
  ampersand,
  backslash,
  codeOf,
  escapeAt,
  isSign,
  lengthOf,
  longestRun,
  no,
  open,
  percent,
  type Wanted,
} from './escape.ts';
import { gapEnd, longestGap, zeroEnd } from './gap.ts';
import type { Element, Pattern } from './pattern.ts';

/** `%2525252f` is a slash, escaped four times. */
const longestRepeat = 4;

/**
 * Where the pattern that begins at `from` ends: the end of the longest reading, 0 if too little of the
 * pattern is there, or {@link open}. Each character may be written as it is, or escaped in any way, once or
 * several times.
 *
 * @param last whether no more bytes follow
 */
export function endOf(pattern: Pattern, bytes: Uint8Array, from: number, last: boolean): number {
  return endFrom(pattern, 0, bytes, from, last);
}

function endFrom(pattern: Pattern, first: number, bytes: Uint8Array, from: number, last: boolean): number {
  const { elements, least } = pattern;
  let end = from;
  for (let index = first; index < elements.length; index++) {
    const element = elements[index] as Element;
    const enough = index >= least ? end : no;
    const { byte, other, gap } = element;
    const isOwnSign = byte === percent || byte === ampersand;
    const there = bytes[end];
    const needsGap = index > 0 && gap === 'numbers';
    if (!isOwnSign && !needsGap && (there === byte || there === other)) {
      end++;
      continue;
    }
    // Most text that begins like a secret stops matching here.
    if (there !== undefined && there !== 0 && gap === 'zeros' && byte !== -1 && !isSign(there)) return enough;
    // If a byte could be a gap or the character, it is the character.
    let at = end;
    let next = needsGap ? no : elementEnd(pattern, index, bytes, at, last);
    if (next === no && index > 0) {
      let after = gap === 'zeros' ? zeroEnd(bytes, at) : gapEnd(gap, bytes, at);
      while (after > at && at - end < longestGap) {
        at = after;
        next = elementEnd(pattern, index, bytes, at, last);
        // The secret may have what reads as an escaped zero in it.
        after = gap === 'zeros' && next === no ? zeroEnd(bytes, at) : at;
      }
      if (after === open && !last) return open;
    }
    if (next === open && !last) return open;
    if (next <= 0) return enough;
    // For a sign, `next` is the end of the rest of the pattern.
    if (isOwnSign && isSign(bytes[at])) return Math.max(next, enough);
    end = next;
  }
  return end;
}

/**
 * A percent sign or an ampersand of the secret: the sign itself or the beginning of an escape. The next bytes
 * decide.
 */
function signEnd(pattern: Pattern, index: number, bytes: Uint8Array, from: number, last: boolean): number {
  const { byte, other } = pattern.elements[index] as Element;
  // Backslashes before it belong to the secret, or escape it.
  let own = from;
  while (bytes[own] === backslash && own - from <= longestRun) own++;
  if (own >= bytes.length && !last) return open;
  let longest = bytes[own] === byte ? endFrom(pattern, index + 1, bytes, own + 1, last) : no;
  if (longest === open) return open;
  for (let repeat = 0; repeat < longestRepeat; repeat++) {
    const read = escapeAt(bytes, from, { byte, other, mayBeEscaped: false }, repeat);
    if (read === open && !last) return open;
    if (read <= 0 || codeOf(read) !== byte) break;
    const end = endFrom(pattern, index + 1, bytes, from + lengthOf(read), last);
    if (end === open) return open;
    longest = Math.max(longest, end);
  }
  return longest;
}

/** Where one character ends. For a sign, where the rest of the pattern ends. */
function elementEnd(pattern: Pattern, index: number, bytes: Uint8Array, at: number, last: boolean): number {
  const element = pattern.elements[index] as Element;
  if ((element.byte === percent || element.byte === ampersand) && isSign(bytes[at]))
    return signEnd(pattern, index, bytes, at, last);
  if (element.byte !== -1) return codeEnd(element, bytes, at);
  let longest = no;
  for (const codes of element.spellings) {
    const end = codesEnd(codes, bytes, at);
    if (end === open) return open;
    longest = Math.max(longest, end);
  }
  return longest;
}

/**
 * A character that takes several codes: its UTF-8, where each byte may be written as it is, or its UTF-16 or
 * its number, where none may.
 */
function codesEnd(codes: readonly Wanted[], bytes: Uint8Array, from: number): number {
  let at = from;
  for (const wanted of codes) {
    const end = codeEnd(wanted, bytes, at);
    if (end <= 0) return end;
    at = end;
  }
  return at;
}

function codeEnd(wanted: Wanted, bytes: Uint8Array, at: number): number {
  const byte = bytes[at];
  if (byte === undefined) return open;
  if (!wanted.isEscaped && (byte === wanted.byte || byte === wanted.other)) return at + 1;
  if (!isSign(byte)) return no;
  const read = escapeAt(bytes, at, wanted);
  if (read <= 0) return read;
  const code = codeOf(read);
  return code === wanted.byte || code === wanted.other ? at + lengthOf(read) : no;
}
