import { type Needle, needlesOf } from './needles.ts';

/** Where a secret is. */
export interface KeyPlace {
  at: number;
  end: number;
  /** The index of the secret, from 0. */
  secret: number;
}

/** The result of a search: a secret, the position from which more bytes decide, or neither. */
export type Search = { kind: 'found'; found: KeyPlace } | { kind: 'open'; at: number } | { kind: 'none' };

const none: Search = { kind: 'none' };

/**
 * Finds secrets in bytes, in each way that programs write them. It looks up two bytes at a time in a table of
 * the pairs that a secret can begin with, so that ordinary text costs one lookup per byte.
 */
export class Scanner {
  /** By the first two bytes of a needle: the needles that begin with them. */
  readonly #byPair = new Map<number, Needle[]>();
  readonly #isPair: Uint8Array;
  /** By one byte: whether a needle begins with it. */
  readonly #isFirst = new Uint8Array(256);

  constructor(values: readonly string[]) {
    this.#isPair = new Uint8Array(values.length === 0 ? 0 : 1 << 16);
    for (const needle of values.flatMap(needlesOf)) {
      const pair = pairAt(needle.bytes, 0);
      this.#byPair.set(pair, [...(this.#byPair.get(pair) ?? []), needle]);
      this.#isPair[pair] = 1;
      this.#isFirst[pair >> 8] = 1;
    }
  }

  /** Whether there is nothing to find. */
  get isIdle(): boolean {
    return this.#isPair.length === 0;
  }

  /**
   * The first secret from `from` on; if several begin at one place, the longest.
   *
   * @param last whether no more bytes follow
   */
  find(bytes: Uint8Array, from: number, last: boolean): Search {
    if (this.isIdle) return none;
    const isPair = this.#isPair;
    const before = bytes.length - 1;
    for (let at = from; at < before; at++) {
      const pair = pairAt(bytes, at);
      if (isPair[pair] === 0) continue;
      const search = findAt(this.#byPair.get(pair) ?? [], bytes, at, last);
      if (search.kind !== 'none') return search;
    }
    const isOpen = !last && before >= from && this.#isFirst[bytes[before] as number] === 1;
    return isOpen ? { kind: 'open', at: before } : none;
  }
}

function pairAt(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
}

function findAt(needles: readonly Needle[], bytes: Uint8Array, at: number, last: boolean): Search {
  let found: KeyPlace | undefined;
  for (const { bytes: wanted, least, secret } of needles) {
    let length = 2;
    while (length < wanted.length && bytes[at + length] === wanted[length]) length++;
    // The next bytes may belong to it.
    if (!last && length < wanted.length && at + length >= bytes.length) return { kind: 'open', at };
    const end = at + length;
    if (length >= least && end > (found?.end ?? 0)) found = { at, end, secret };
  }
  return found ? { kind: 'found', found } : none;
}
