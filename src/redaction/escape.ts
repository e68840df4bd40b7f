/** The bytes ended before the answer was certain. */
export const open = -1;
/** There is no such escape. */
export const no = 0;

/**
 * How many signs in a row are read as one escape: a text that was put into JSON five times has 31
 * backslashes.
 */
export const longestRun = 32;
/** How many digits a number in an HTML entity may have, after any number of zeros. */
const longestNumber = 16;
const longestName = 12;

export const backslash = 0x5c;
export const percent = 0x25;
export const ampersand = 0x26;
const hash = 0x23;
const semicolon = 0x3b;
const blank = 0x20;
const braceOpens = 0x7b;
const braceCloses = 0x7d;

/**
 * The value of an escape and its length in bytes, in one number, so that reading one allocates nothing.
 * {@link open} and {@link no} are of this type too.
 */
export type Reading = number;

const codeBits = 21;
const codeMask = (1 << codeBits) - 1;

export const codeOf = (reading: Reading): number => reading & codeMask;
export const lengthOf = (reading: Reading): number => reading >> codeBits;

function reading(code: number, length: number): Reading {
  return code > 0x10ffff ? no : (length << codeBits) | code;
}

/** The character that an escape should have. */
export interface Wanted {
  byte: number;
  other: number;
  /** Whether it may be written as it is after a backslash: a letter would be another character there. */
  mayBeEscaped: boolean;
  /** Whether it must not be written as it is, because its number is that of another byte. */
  isEscaped?: boolean;
}

export const anyCode: Wanted = { byte: -1, other: -1, mayBeEscaped: false };

export function isSign(byte: number | undefined): boolean {
  return byte === backslash || byte === percent || byte === ampersand;
}

/**
 * Reads the escape that begins with the sign at `from`: `\n`, `\/`, `\u0073`, `\u{73}`, `\x73`, `\163`,
 * `%73`, `%u0073`, `&#115;`, `&#x73;`, `&sol;`, or one of these whose sign is escaped itself. If an escape
 * has two readings, the wanted one counts.
 *
 * @param passes how many wanted signs are read as the sign of a further escape
 */
export function escapeAt(bytes: Uint8Array, from: number, wanted: Wanted, passes = 0): Reading {
  let left = passes;
  let sign = bytes[from] as number;
  let at = from + 1;
  for (let run = 0; run <= longestRun; run++) {
    const byte = bytes[at];
    if (byte === undefined) return open;
    if (sign === backslash) {
      if (byte === backslash) {
        at++;
        continue;
      }
      if (wanted.mayBeEscaped && isWanted(byte, wanted)) return reading(byte, at + 1 - from);
      if (byte === percent || byte === ampersand) {
        sign = byte;
        at++;
        continue;
      }
    }
    const read = afterSign(sign, bytes, at, wanted);
    if (read <= 0) return read;
    const code = codeOf(read);
    at += lengthOf(read);
    if (!isSign(code) || (isWanted(code, wanted) && left-- === 0)) return reading(code, at - from);
    sign = code;
  }
  return no;
}

function isWanted(code: number, { byte, other }: Wanted): boolean {
  return code === byte || code === other;
}

function afterSign(sign: number, bytes: Uint8Array, at: number, wanted: Wanted): Reading {
  if (sign === percent) return percentEscape(bytes, at);
  if (sign === ampersand) return entity(bytes, at);
  const read = backslashEscape(bytes, at);
  if (read > 0 && isWanted(codeOf(read), wanted)) return read;
  const styled = styleEscape(bytes, at);
  return styled === open || (styled > 0 && isWanted(codeOf(styled), wanted)) ? styled : read;
}

const controls: Record<number, number> = { 98: 0x08, 102: 0x0c, 110: 0x0a, 114: 0x0d, 116: 0x09 };

function backslashEscape(bytes: Uint8Array, at: number): Reading {
  const byte = bytes[at] as number;
  const digits = { 117: 4, 120: 2, 85: 8 }[byte];
  if (digits !== undefined) {
    const brace = lengthOfMark(braceOpens, bytes, at + 1);
    if (brace === open) return open;
    if (brace === no) return exactly(bytes, at + 1, digits, 1);
    const read = number(bytes, at + 1 + brace, 16, longestNumber);
    if (read <= 0) return read;
    const end = at + 1 + brace + lengthOf(read);
    const closing = lengthOfMark(braceCloses, bytes, end);
    return closing <= 0 ? closing : reading(codeOf(read), end + closing - at);
  }
  if (byte >= 0x30 && byte <= 0x37) return number(bytes, at, 8, 3);
  const control = controls[byte];
  if (control !== undefined) return reading(control, 1);
  return isAlphanumeric(byte) ? no : reading(byte, 1);
}

/** As in style sheets: `\73 `. */
function styleEscape(bytes: Uint8Array, at: number): Reading {
  if (!isAlphanumeric(bytes[at]) || (bytes[at] as number) > 0x39) return no;
  const read = number(bytes, at, 16, 6);
  if (read <= 0) return read;
  const length = lengthOf(read);
  if (length < 2) return no;
  if (at + length >= bytes.length) return open;
  return bytes[at + length] === blank ? reading(codeOf(read), length + 1) : read;
}

function percentEscape(bytes: Uint8Array, at: number): Reading {
  const byte = (bytes[at] as number) | 0x20;
  return byte === 0x75 ? exactly(bytes, at + 1, 4, 1) : exactly(bytes, at, 2, 0);
}

/** Characters that have names in HTML. */
const names: Record<string, string> = {
  ...{ amp: '&', AMP: '&', lt: '<', LT: '<', gt: '>', GT: '>', quot: '"', QUOT: '"', apos: "'", sol: '/' },
  ...{ bsol: '\\', plus: '+', percnt: '%', equals: '=', colon: ':', semi: ';', comma: ',', period: '.' },
  ...{ excl: '!', num: '#', dollar: '$', ast: '*', midast: '*', lpar: '(', rpar: ')', lowbar: '_' },
  ...{ UnderBar: '_', commat: '@', quest: '?', lsqb: '[', lbrack: '[', rsqb: ']', rbrack: ']', Hat: '^' },
  ...{ grave: '`', DiacriticalGrave: '`', lcub: '{', lbrace: '{', rcub: '}', rbrace: '}', verbar: '|' },
  ...{ vert: '|', VerticalLine: '|', Tab: '\t', NewLine: '\n' },
};

/** The first letters of these names, by the code of the character. */
export function nameLetters(code: number): string {
  const own = Object.entries(names).filter(([, character]) => character.charCodeAt(0) === code);
  return own.map(([name]) => name.charAt(0)).join('');
}

function entity(bytes: Uint8Array, at: number): Reading {
  const mark = lengthOfMark(hash, bytes, at);
  if (mark === open) return open;
  if (mark !== no) {
    const isHexadecimal = ((bytes[at + mark] ?? 0) | 0x20) === 0x78;
    const before = mark + (isHexadecimal ? 1 : 0);
    const read = number(bytes, at + before, isHexadecimal ? 16 : 10, longestNumber);
    if (read <= 0) return read;
    const length = before + lengthOf(read);
    const end = lengthOfMark(semicolon, bytes, at + length);
    return end === open ? open : reading(codeOf(read), length + end);
  }
  let end = at;
  while (end - at <= longestName && isAlphanumeric(bytes[end])) end++;
  if (end === at || end - at > longestName) return no;
  const last = lengthOfMark(semicolon, bytes, end);
  if (last <= 0) return last;
  const name = String.fromCharCode(...bytes.subarray(at, end));
  const character = Object.hasOwn(names, name) ? names[name] : undefined;
  return character === undefined ? no : reading(character.charCodeAt(0), end + last - at);
}

/** How many bytes a mark of an escape takes, as it is or percent-encoded with the rest of the escape. */
function lengthOfMark(mark: number, bytes: Uint8Array, at: number): number {
  if (bytes[at] === mark) return 1;
  if (at >= bytes.length) return open;
  if (bytes[at] !== percent) return no;
  const read = exactly(bytes, at + 1, 2, 1);
  return read === open ? open : read !== no && codeOf(read) === mark ? lengthOf(read) : no;
}

/** The number in exactly this many hexadecimal digits. */
function exactly(bytes: Uint8Array, from: number, digits: number, before: number): Reading {
  const read = number(bytes, from, 16, digits);
  if (read <= 0) return read;
  return lengthOf(read) === digits ? reading(codeOf(read), digits + before) : no;
}

/** The number in up to this many digits. */
function number(bytes: Uint8Array, from: number, base: number, most: number): Reading {
  let value = 0;
  let at = from;
  for (; at < from + most; at++) {
    const byte = bytes[at];
    if (byte === undefined) return open;
    const digit = digitOf(byte);
    if (digit === undefined || digit >= base) break;
    value = Math.min(value * base + digit, codeMask);
  }
  return at === from ? no : reading(value, at - from);
}

function digitOf(byte: number): number | undefined {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : undefined;
}

export function isAlphanumeric(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  return (byte >= 0x30 && byte <= 0x39) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a);
}

/** The bytes are not an escape. */
export const nothing = -2;
/** One escape alone does not determine the byte. */
export const anything = -3;

/** The byte of the escape at `at`; {@link open}, {@link nothing} or {@link anything}. */
export function escapedByte(bytes: Uint8Array, at: number): number {
  const sign = bytes[at];
  let after = at;
  while (bytes[after] === backslash) after++;
  const byte = bytes[after];
  if (byte === undefined) return open;
  const isNumber = sign === backslash && byte >= 0x30 && byte <= 0x39;
  // A number has two readings. A sign is escaped, and may begin a further escape.
  if (isNumber || (sign === backslash && isSign(byte))) return anything;
  const read =
    sign === backslash ? backslashEscape(bytes, after) : afterSign(sign as number, bytes, at + 1, anyCode);
  if (read <= 0) return read === open ? open : nothing;
  const code = codeOf(read);
  return isSign(code) || code > 0x7f ? anything : code;
}

/**
 * The letter or digit at `at` whose signs are escaped themselves (`%2573`, `&amp;#115;`), with the same
 * results as {@link escapedByte}. The escape has two readings only if the last of these signs is a backslash.
 */
export function chainedByte(bytes: Uint8Array, at: number): number {
  let sign = bytes[at] as number;
  let next = at + 1;
  for (let run = 0; run <= longestRun; run++) {
    const byte = bytes[next];
    if (byte === undefined) return open;
    if (sign === backslash) {
      if (!isSign(byte)) return anything;
      sign = byte;
      next++;
      continue;
    }
    const read = afterSign(sign, bytes, next, anyCode);
    if (read <= 0) return read === open ? open : nothing;
    const code = codeOf(read);
    if (!isSign(code)) return code > 0x7f ? anything : code;
    sign = code;
    next += lengthOf(read);
  }
  return nothing;
}
