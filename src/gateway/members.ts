/** Where a member of a JSON object stands in its bytes. */
export interface Member {
  name: string;
  /** Of its value, `end` exclusive. */
  start: number;
  end: number;
}

const quote = 0x22;
const backslash = 0x5c;
const opening: ReadonlySet<number> = new Set([0x7b, 0x5b]);
const closing: ReadonlySet<number> = new Set([0x7d, 0x5d]);
const comma = 0x2c;
const colon = 0x3a;
const blank: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * The members of a JSON object, in order, a repeated name each time. `bytes` must be JSON (have been parsed), with an object that begins at
 * `from`. Lets a value be changed while all other bytes stay what the client sent.
 */
export function membersOf(bytes: Buffer, from = 0): Member[] {
  const members: Member[] = [];
  let at = bytes.indexOf('{', from) + 1;
  while (true) {
    at = afterBlanks(bytes, at);
    if (bytes[at] !== quote) return members;
    const nameEnd = stringEnd(bytes, at);
    const name = String(JSON.parse(bytes.toString('utf8', at, nameEnd)));
    const start = afterBlanks(bytes, bytes.indexOf(colon, nameEnd) + 1);
    const end = valueEnd(bytes, start);
    members.push({ name, start, end });
    at = afterBlanks(bytes, end);
    if (bytes[at] !== comma) return members;
    at += 1;
  }
}

function afterBlanks(bytes: Buffer, from: number): number {
  let at = from;
  while (blank.has(bytes[at] ?? 0)) at += 1;
  return at;
}

/** The end of the string that begins at `from`. */
function stringEnd(bytes: Buffer, from: number): number {
  let at = bytes.indexOf(quote, from + 1);
  while (isEscaped(bytes, at)) at = bytes.indexOf(quote, at + 1);
  return at === -1 ? bytes.length : at + 1;
}

function isEscaped(bytes: Buffer, at: number): boolean {
  let before = at - 1;
  while (bytes[before] === backslash) before -= 1;
  return (at - 1 - before) % 2 === 1;
}

function valueEnd(bytes: Buffer, start: number): number {
  if (bytes[start] === quote) return stringEnd(bytes, start);
  let depth = 0;
  let at = start;
  while (at < bytes.length) {
    const byte = bytes[at] ?? 0;
    if (byte === quote) {
      at = stringEnd(bytes, at);
      continue;
    }
    if (opening.has(byte)) depth += 1;
    else if (closing.has(byte)) {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && (byte === comma || blank.has(byte))) return at;
    at += 1;
  }
  return at;
}
