import { anyCode, backslash, codeOf, escapeAt, isAlphanumeric, isSign, lengthOf, open } from './escape.ts';

/**
 * What is skipped before a character. `zeros`: the zeros that UTF-16 and UTF-32 put between ASCII. `lines`:
 * also line breaks and the indentation of the next line. `separators`: also everything that separates
 * numbers. `numbers`: the same, but required, because decimal numbers must be separated.
 */
export type Gap = 'nothing' | 'zeros' | 'lines' | 'separators' | 'numbers';

/** Bytes. */
export const longestGap = 24;

const zero = 0x30;
const letterX = 0x78;

/** The position after the one zero at `at`, which may be escaped or not; `at` itself if there is none. */
export function zeroEnd(bytes: Uint8Array, at: number): number {
  const byte = bytes[at];
  if (byte === undefined) return open;
  const escaped = isSign(byte) ? escapeAt(bytes, at, anyCode) : 0;
  if (escaped === open) return open;
  if (escaped > 0 && codeOf(escaped) === 0) return at + lengthOf(escaped);
  return byte === 0 ? at + 1 : at;
}

/** The position after the gap at `from`, which may be escaped or not. */
export function gapEnd(gap: Gap, bytes: Uint8Array, from: number): number {
  if (gap === 'nothing') return from;
  let at = from;
  while (at - from < longestGap) {
    const byte = bytes[at];
    if (byte === undefined) return open;
    const escaped = isSign(byte) ? escapeAt(bytes, at, anyCode) : 0;
    if (escaped === open) return open;
    if (escaped > 0 && isIn(gap, codeOf(escaped), at > from)) at += lengthOf(escaped);
    else if (isIn(gap, byte, at > from)) at++;
    else if (gap === 'separators' && byte === zero && at + 1 >= bytes.length) return open;
    else if (gap === 'separators' && isPrefix(bytes, at, from)) at++;
    else break;
  }
  return at;
}

function isIn(gap: Gap, code: number, isWithin: boolean): boolean {
  if (code === 0) return true;
  if (gap === 'zeros') return false;
  if (gap === 'lines')
    return code === 0x0a || code === 0x0d || (isWithin && (code === 0x20 || code === 0x09));
  return code < 0x80 && (!isAlphanumeric(code) || (gap === 'numbers' && code === zero));
}

/** The `0x` or `\x` before a number. */
function isPrefix(bytes: Uint8Array, at: number, from: number): boolean {
  const byte = bytes[at] as number;
  if (byte === zero) return ((bytes[at + 1] ?? 0) | 0x20) === letterX;
  if ((byte | 0x20) !== letterX || at === from) return false;
  return bytes[at - 1] === zero || bytes[at - 1] === backslash;
}
