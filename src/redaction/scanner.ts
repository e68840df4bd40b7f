import { anything, endOf, escapedByte, longestRun, open } from './decode.ts';
import { type Element, type Pattern, patternsOf } from './pattern.ts';

const backslash = 0x5c;
const percent = 0x25;

/** A place where a secret stands. */
export interface Found {
  at: number;
  end: number;
  /** Which of the secrets, from 0. */
  secret: number;
}

/** What a search came to: a secret, the place from which more bytes decide, or neither. */
export type Search = { kind: 'found'; found: Found } | { kind: 'open'; at: number } | { kind: 'none' };

const none: Search = { kind: 'none' };

/**
 * Finds secrets in bytes, whatever way they are written. Two bytes at a time are looked up in a table of those that a secret can begin
 * with, so that ordinary text costs one look for each of its bytes.
 */
export class Scanner {
  readonly #patterns: readonly Pattern[];
  /** By two bytes: whether a secret can begin so. */
  readonly #beginnings: Uint8Array;
  /** By the first byte that a secret can be written with when nothing is escaped. */
  readonly #byFirst: readonly (readonly Pattern[])[];
  /** By one byte: whether it may be all that is there yet of a beginning. */
  readonly #firsts = new Uint8Array(256);

  constructor(values: readonly string[]) {
    this.#patterns = values.flatMap(patternsOf);
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
  }

  /** Whether there is nothing to find. */
  get isIdle(): boolean {
    return this.#beginnings.length === 0;
  }

  /**
   * The first secret from `from` on, the longest where several begin at one place.
   *
   * @param last whether no more bytes come after these
   */
  find(bytes: Uint8Array, from: number, last: boolean): Search {
    if (this.isIdle) return none;
    const beginnings = this.#beginnings;
    const before = bytes.length - 1;
    for (let at = from; at < before; at++) {
      if (beginnings[((bytes[at] as number) << 8) | (bytes[at + 1] as number)] === 0) continue;
      const byte = bytes[at] as number;
      if (byte !== backslash && byte !== percent) {
        const search = this.#findAt(this.#byFirst[byte] as readonly Pattern[], bytes, at, last);
        if (search.kind !== 'none') return search;
        continue;
      }
      const run = at;
      const patterns = this.#escapedAt(bytes, at);
      // All backslashes of a run begin the same: one look is enough, at as many as are read as an escape.
      if (byte === backslash) while (at + 1 < bytes.length && bytes[at + 1] === backslash) at++;
      const search = this.#findAt(patterns, bytes, Math.max(run, at + 1 - longestRun), last);
      if (search.kind !== 'none') return search;
    }
    // A secret of one byte; or the first of two, of which the other is to come.
    const at = Math.max(from, before);
    if (at >= bytes.length || !this.#firsts[bytes[at] as number]) return none;
    if (!last) return { kind: 'open', at };
    return this.#findAt(this.#patterns, bytes, at, last);
  }

  /** Those that can begin with the escape at `at`. */
  #escapedAt(bytes: Uint8Array, at: number): readonly Pattern[] {
    const first = escapedByte(bytes, at);
    if (first === open || first === anything) return this.#patterns;
    const escaped = this.#byFirst[first] ?? [];
    if (bytes[at] === backslash) return escaped;
    // A percent sign may be a secret's own, and no escape.
    const own = this.#byFirst[percent] as readonly Pattern[];
    return own.length === 0 ? escaped : [...own, ...escaped];
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

/** The pairs of bytes that a pattern's first two can be, whatever way they are written. Some that they cannot be are among them. */
function beginningsOf(pattern: Pattern): number[] {
  const { elements, wraps } = pattern;
  const [first, second] = elements as [Element, Element | undefined];
  const every = Array.from({ length: 256 }, (_, byte) => byte);
  const breaks = wraps ? bytesOf('\r\n') : [];
  const after = second && second.byte !== -1 ? [...anyOf(second), ...bytesOf('\\%'), ...breaks] : every;
  const pairs: [number[], number[]][] =
    first.byte === -1 ? [[first.bytes.slice(0, 1), every]] : [[anyOf(first), after]];
  const escaped = [...bytesOf('\\u%'), ...(first.mayBeEscaped ? anyOf(first) : []), first.letter];
  const codes = [...firstBytesOf(pattern), percent, backslash];
  const digits = codes.flatMap((code) => bothCases((code >> 4).toString(16)));
  pairs.push([[backslash], escaped], [bytesOf('%'), digits]);
  return pairs
    .flatMap(([heads, tails]) => heads.flatMap((head) => tails.map((tail) => [head, tail] as const)))
    .filter(([head, tail]) => head >= 0 && tail >= 0)
    .map(([head, tail]) => (head << 8) | tail);
}

function firstBytesOf({ elements: [first] }: Pattern): number[] {
  if (first === undefined) return [];
  return first.byte === -1 ? first.bytes.slice(0, 1) : anyOf(first);
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
