import { endOf } from './decode.ts';
import {
  ampersand,
  anything,
  backslash,
  chainedByte,
  escapedByte,
  isAlphanumeric,
  isSign,
  longestRun,
  nameLetters,
  nothing,
  open,
  percent,
} from './escape.ts';
import { type Element, type Pattern, patternsOf } from './pattern.ts';

/** Where a secret is. */
export interface Found {
  at: number;
  end: number;
  /** The index of the secret, from 0. */
  secret: number;
}

/** The result of a search: a secret, the position from which more bytes decide, or neither. */
export type Search = { kind: 'found'; found: Found } | { kind: 'open'; at: number } | { kind: 'none' };

const none: Search = { kind: 'none' };

/**
 * Finds secrets in bytes, in any encoding. It looks up two bytes at a time in a table of the pairs that a
 * secret can begin with, so that ordinary text costs one lookup per byte.
 */
export class Scanner {
  readonly #patterns: readonly Pattern[];
  /** By two bytes: whether a secret can begin with them. */
  readonly #beginnings: Uint8Array;
  /** By the first byte of a secret in which nothing is escaped. */
  readonly #byFirst: readonly (readonly Pattern[])[];
  /** Patterns whose first character may be a sign, or may be written as it is after a backslash. */
  readonly #escapable: readonly Pattern[];
  /** By a letter or digit: the patterns of `#escapable`, and those that begin with this letter or digit. */
  readonly #byChained: readonly (readonly Pattern[])[];
  /** By one byte: whether a secret can begin with it. */
  readonly #firsts = new Uint8Array(256);

  /** @param ignoresCase whether letters match in either case */
  constructor(values: readonly string[], ignoresCase = false) {
    this.#patterns = values.flatMap((value, secret) => patternsOf(value, secret, ignoresCase));
    this.#beginnings = new Uint8Array(this.#patterns.length === 0 ? 0 : 1 << 16);
    const byFirst = Array.from({ length: 256 }, (): Pattern[] => []);
    for (const pattern of this.#patterns) {
      for (const first of new Set(firstBytesOf(pattern))) byFirst[first]?.push(pattern);
      for (const pair of beginningsOf(pattern)) {
        this.#beginnings[pair] = 1;
        this.#firsts[pair >> 8] = 1;
      }
    }
    this.#byFirst = byFirst;
    this.#escapable = this.#patterns.filter((pattern) => !firstBytesOf(pattern).every(isAlphanumeric));
    this.#byChained = byFirst.map((patterns) => [...new Set([...patterns, ...this.#escapable])]);
  }

  /** Whether there is nothing to find. */
  get isIdle(): boolean {
    return this.#beginnings.length === 0;
  }

  /**
   * The first secret from `from` on; if several begin at one place, the longest.
   *
   * @param last whether no more bytes follow
   */
  find(bytes: Uint8Array, from: number, last: boolean): Search {
    if (this.isIdle) return none;
    const beginnings = this.#beginnings;
    const before = bytes.length - 1;
    for (let at = from; at < before; at++) {
      if (beginnings[((bytes[at] as number) << 8) | (bytes[at + 1] as number)] === 0) continue;
      const byte = bytes[at] as number;
      if (!isSign(byte)) {
        const search = this.#findAt(this.#byFirst[byte] as readonly Pattern[], bytes, at, last);
        if (search.kind !== 'none') return search;
        continue;
      }
      const run = at;
      const patterns = this.#escapedAt(bytes, at);
      // A secret may begin with any of several backslashes in a row. One search is enough, at the first of
      // those that are read as one escape.
      if (byte === backslash) while (at + 1 < bytes.length && bytes[at + 1] === backslash) at++;
      const search = this.#findAt(patterns, bytes, Math.max(run, at + 1 - longestRun), last);
      if (search.kind !== 'none') return search;
    }
    // A secret of one byte, or the first of two bytes whose second has not arrived.
    const at = Math.max(from, before);
    if (at >= bytes.length || !this.#firsts[bytes[at] as number]) return none;
    if (!last) return { kind: 'open', at };
    return this.#findAt(this.#patterns, bytes, at, last);
  }

  /** Patterns that can begin with the escape at `at`. */
  #escapedAt(bytes: Uint8Array, at: number): readonly Pattern[] {
    const first = escapedByte(bytes, at);
    if (first === anything) return this.#chainedAt(bytes, at);
    if (first === open) return this.#patterns;
    const escaped = this.#byFirst[first] ?? [];
    if (bytes[at] === backslash) return escaped;
    // A percent sign or an ampersand may belong to a secret and not be an escape.
    const own = this.#byFirst[bytes[at] as number] as readonly Pattern[];
    return own.length === 0 ? escaped : [...own, ...escaped];
  }

  /** Patterns that can begin with an escape whose sign is escaped itself. */
  #chainedAt(bytes: Uint8Array, at: number): readonly Pattern[] {
    const chained = chainedByte(bytes, at);
    if (chained === open || chained === anything) return this.#patterns;
    return chained === nothing ? this.#escapable : (this.#byChained[chained] as readonly Pattern[]);
  }

  #findAt(patterns: readonly Pattern[], bytes: Uint8Array, at: number, last: boolean): Search {
    let found: Found | undefined;
    for (const pattern of patterns) {
      const end = endOf(pattern, bytes, at, last);
      if (end === open) return { kind: 'open', at };
      if (end > (found?.end ?? 0)) found = { at, end, secret: pattern.secret };
    }
    return found ? { kind: 'found', found } : none;
  }
}

/** The pairs of bytes that a pattern can begin with, in any encoding. Includes some that it cannot. */
function beginningsOf(pattern: Pattern): number[] {
  const [first, second] = pattern.elements as [Element, Element | undefined];
  const heads = firstBytesOf(pattern);
  const after = second && second.byte !== -1 && first.byte !== -1 ? followersOf(second) : every;
  const codes = [...heads, percent, backslash, ampersand];
  const digits = codes.flatMap((code) => bothCases((code >> 4).toString(16)));
  const names = codes.map(nameLetters).join('');
  const pairs: [number[], number[]][] = [
    [heads, after],
    [[backslash], [...bytesOf('\\%&uUx01234567'), ...(first.mayBeEscaped ? heads : []), ...lettersOf(first)]],
    [[percent], [...digits, ...bytesOf('uU')]],
    [[ampersand], bytesOf(`#%${names}`)],
  ];
  return pairs.flatMap(([ones, others]) => ones.flatMap((one) => others.map((other) => (one << 8) | other)));
}

const every = Array.from({ length: 256 }, (_, byte) => byte);

/** What can follow the first character, if the second is this one. */
function followersOf(second: Element): number[] {
  const gap = { nothing: '', zeros: '\0', lines: '\0\r\n', separators: every, numbers: every }[second.gap];
  return [...anyOf(second), ...bytesOf('\\%&'), ...(typeof gap === 'string' ? bytesOf(gap) : gap)];
}

/** The letter of a control character's short escape. */
function lettersOf({ byte }: Element): number[] {
  const letters: Record<number, string> = { 8: 'b', 9: 't', 10: 'n', 12: 'f', 13: 'r' };
  return bytesOf(letters[byte] ?? '');
}

/** The bytes that its first character can begin with if nothing is escaped. */
function firstBytesOf({ elements: [first] }: Pattern): number[] {
  if (first === undefined) return [];
  return first.byte === -1 ? (first.spellings[0] ?? []).slice(0, 1).map(({ byte }) => byte) : anyOf(first);
}

function anyOf({ byte, other }: Element): number[] {
  return [byte, other];
}

function bytesOf(text: string): number[] {
  return [...Buffer.from(text)];
}

function bothCases(digit: string): number[] {
  return bytesOf(`${digit}${digit.toUpperCase()}`);
}
