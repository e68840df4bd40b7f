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

/** One way to write a secret. */
interface Needle {
  bytes: Buffer;
  /** How many of its bytes are enough to match. */
  least: number;
  /** The index of its secret. */
  secret: number;
}

/**
 * The ways in which programs write a text that they pass on: in JSON (once, and as text in JSON), in URLs and
 * forms, in HTML, in UTF-16, in hexadecimal and in base64. A sandbox never has a key, so what leaks one is a
 * server, a library or a log that quotes it, not somebody who hides it.
 */
const writings: readonly ((text: string) => string | Buffer)[] = [
  (text) => text,
  json,
  (text) => json(json(text)),
  (text) => json(text).replaceAll('/', '\\/'),
  (text) => json(text).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  percent,
  (text) => lowerEscapes(percent(text)),
  (text) => percent(percent(text)),
  (text) => percent(text).replaceAll('%2F', '/'),
  form,
  (text) => html(text, '&#39;'),
  (text) => html(text, '&#x27;'),
  (text) => Buffer.from(text, 'utf16le'),
  (text) => Buffer.from(text, 'utf16le').swap16(),
  (text) => Buffer.from(text).toString('hex'),
  (text) => Buffer.from(text).toString('hex').toUpperCase(),
  ...[0, 1, 2].flatMap((before) => [
    (text: string) => base64(text, before),
    (text: string) => base64(text, before).replaceAll('+', '-').replaceAll('/', '_'),
    (text: string) => percent(base64(text, before)),
  ]),
];

/** Fewer bytes of a written secret than this could be anything. */
const shortestNeedle = 6;

/**
 * All ways to write a secret, each once.
 *
 * @param secret the index of the secret
 */
export function needlesOf(value: string, secret: number): Needle[] {
  const beginning = beginningOf(value);
  const needles = new Map<string, Needle>();
  for (const write of writings) {
    const bytes = Buffer.from(write(value));
    const least = Math.min(bytes.length, Buffer.from(write(beginning)).length);
    if (least >= Math.min(shortestNeedle, value.length))
      needles.set(bytes.toString('latin1'), { bytes, least, secret });
  }
  return [...needles.values()];
}

function json(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** Half of a pair of surrogates has no percent-encoding. */
function percent(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

function lowerEscapes(text: string): string {
  return text.replace(/%../g, (written) => written.toLowerCase());
}

function form(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1);
}

function html(text: string, apostrophe: string): string {
  const named: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return text.replace(/[&<>"']/g, (sign) => named[sign] ?? apostrophe);
}

/**
 * The letters that no neighbour can change. A letter carries 6 bits; the first ones share theirs with the
 * bytes before the secret, the last one with the bytes after it.
 *
 * @param before how many bytes are before the secret in its group of three
 */
function base64(text: string, before: number): string {
  const bytes = Buffer.from(text);
  const written = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
  return written.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
}

/** In characters. A shorter beginning could be anything. */
const fewest = 12;
/**
 * How many characters after a key's label reveal too much. Fewer are shown on purpose, to tell keys apart.
 */
const fewestOwn = 8;

/**
 * The label that every key of a kind begins with (`sk-ant-api03-`, `github_pat_`): words with a few digits,
 * each ended by a dash or an underscore. If a whole key consists of such words, its label ends after the last
 * one.
 */
const label = /^(?:[A-Za-z]{1,12}\d{0,3}[-_])+/;

/**
 * The shortest beginning of a secret that reveals too much of it, so that it counts as the secret: half of
 * the secret, at least 12 characters, 8 of them after the label. A shorter secret counts only as a whole.
 */
function beginningOf(value: string): string {
  const characters = [...value];
  const named = label.exec(value)?.[0].length ?? 0;
  return characters.slice(0, Math.max(fewest, Math.ceil(characters.length / 2), named + fewestOwn)).join('');
}
