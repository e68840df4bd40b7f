import { foreignJson } from '../../bounds/anyone.ts';
import { parseForeignJson } from '../../parse-json.ts';
import { firstOf, isWhole, type NumberState, nextOf } from './json-number.ts';

export type JsonKind = 'object' | 'array' | 'scalar';

/** Is called for each value of a document. Positions are in the chunk that is being written. */
export interface JsonListener {
  /** Whether the names in the object that is being read matter now. */
  readonly wantsNames: boolean;
  /** A name in an object; undefined if it is longer than any that matters. */
  name(text: string | undefined): void;
  /** A value begins with the byte at `at`. */
  begin(kind: JsonKind, at: number): void;
  /** The innermost value ends before `at`. */
  end(at: number): void;
}

/** The bytes are not a JSON document, or one that is nested too deep. */
export class NotJson extends Error {
  override readonly name = 'NotJson';
}

type State =
  | 'value'
  | 'first entry'
  | 'first name'
  | 'name'
  | 'colon'
  | 'after'
  | 'done'
  | 'text'
  | 'escape'
  | 'hex'
  | 'number'
  | 'word';

const byteOf = (character: string) => character.charCodeAt(0);
const [quote, backslash, comma, colon] = ['"', '\\', ',', ':'].map(byteOf);
const [openObject, closeObject, openArray, closeArray] = ['{', '}', '[', ']'].map(byteOf);
const hexEscape = byteOf('u');
const byteOrderMark = [0xef, 0xbb, 0xbf];

const classOf = (isIn: (byte: number) => boolean) =>
  Uint8Array.from({ length: 256 }, (_, byte) => Number(isIn(byte)));
const isSpace = classOf((byte) => [0x20, 0x09, 0x0a, 0x0d].includes(byte));
/** Bytes of a text that stand for themselves. UTF-8 is checked elsewhere. */
const isPlain = classOf((byte) => byte >= 0x20 && byte !== quote && byte !== backslash);
const isEscape = classOf((byte) => '"\\/bfnrt'.includes(String.fromCharCode(byte)));
const isHex = classOf((byte) => /[0-9a-fA-F]/.test(String.fromCharCode(byte)));

const words = new Map(['true', 'false', 'null'].map((word) => [byteOf(word), word]));
/**
 * The bytes of the longest name, as written. No name that matters is longer, even if all its characters are
 * escaped.
 */
const nameBytes = 256;

/**
 * Reads a JSON document that arrives in chunks, and accepts exactly what V8's parser does, with a byte order
 * mark or without. It keeps nothing but the kind of each open value and the name that it is reading.
 */
export class JsonScanner {
  readonly #listener: JsonListener;
  readonly #isObject = new Uint8Array(foreignJson.count.levels);
  #level = 0;
  #state: State = 'value';
  #markBytes = 0;
  #isName = false;
  readonly #name = Buffer.alloc(nameBytes);
  #nameLength = 0;
  #hexDigits = 0;
  #number: NumberState = 'minus';
  #word = '';
  #wordLength = 0;

  constructor(listener: JsonListener) {
    this.#listener = listener;
  }

  /** Throws {@link NotJson}. */
  write(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) at = this.#read(chunk, at);
  }

  /** Call this at the end of the document. Throws {@link NotJson} if it is incomplete. */
  end(): void {
    if (this.#state === 'number' && this.#level === 0) this.#endNumber(0);
    if (this.#state !== 'done') throw new NotJson('the document is incomplete');
  }

  /** Returns where to continue. */
  #read(chunk: Uint8Array, at: number): number {
    const byte = chunk[at] as number;
    switch (this.#state) {
      case 'text':
        return this.#text(chunk, at);
      case 'escape':
        this.#hexDigits = 0;
        if (byte === hexEscape) this.#state = 'hex';
        else if (isEscape[byte]) this.#state = 'text';
        else throw new NotJson('a text has an unknown escape');
        this.#gather(chunk, at, at + 1);
        return at + 1;
      case 'hex':
        if (!isHex[byte]) throw new NotJson('a text has an incomplete escape');
        if (++this.#hexDigits === 4) this.#state = 'text';
        this.#gather(chunk, at, at + 1);
        return at + 1;
      case 'number': {
        const next = nextOf(this.#number, byte);
        if (next === undefined) return this.#endNumber(at);
        this.#number = next;
        return at + 1;
      }
      case 'word':
        if (byte !== this.#word.charCodeAt(this.#wordLength)) throw new NotJson('a word is unknown');
        if (++this.#wordLength === this.#word.length) this.#ended(at + 1);
        return at + 1;
      default:
        if (this.#markBytes < 3 && this.#isMark(byte)) return at + 1;
        if (!isSpace[byte]) this.#structure(byte, at);
        return at + 1;
    }
  }

  /** A byte between texts, numbers and words. */
  #structure(byte: number, at: number): void {
    const state = this.#state;
    const isObject = this.#isObject[this.#level - 1] === 1;
    const mayEnd = state === 'after' || state === 'first entry' || state === 'first name';
    if (mayEnd && byte === (isObject ? closeObject : closeArray)) this.#close(at);
    else if (state === 'value' || state === 'first entry') this.#begin(byte, at);
    else if ((state === 'name' || state === 'first name') && byte === quote) this.#beginName();
    else if (state === 'colon' && byte === colon) this.#state = 'value';
    else if (state === 'after' && byte === comma) this.#state = isObject ? 'name' : 'value';
    else throw new NotJson('a character is in the wrong place');
  }

  #beginName(): void {
    this.#isName = true;
    this.#nameLength = 0;
    this.#state = 'text';
  }

  #begin(byte: number, at: number): void {
    if (byte === openObject || byte === openArray) {
      const isObject = byte === openObject;
      if (this.#level === this.#isObject.length) throw new NotJson('the document has too many levels');
      this.#isObject[this.#level++] = Number(isObject);
      this.#state = isObject ? 'first name' : 'first entry';
      this.#listener.begin(isObject ? 'object' : 'array', at);
      return;
    }
    if (byte === quote) {
      this.#isName = false;
      this.#state = 'text';
    } else this.#beginWord(byte);
    this.#listener.begin('scalar', at);
  }

  #beginWord(byte: number): void {
    const word = words.get(byte);
    const number = firstOf(byte);
    if (word !== undefined) {
      this.#word = word;
      this.#wordLength = 1;
      this.#state = 'word';
    } else if (number !== undefined) {
      this.#number = number;
      this.#state = 'number';
    } else throw new NotJson('a value is missing');
  }

  #close(at: number): void {
    this.#level -= 1;
    this.#ended(at + 1);
  }

  #ended(at: number): void {
    this.#state = this.#level === 0 ? 'done' : 'after';
    this.#listener.end(at);
  }

  #endNumber(at: number): number {
    if (!isWhole(this.#number)) throw new NotJson('a number is incomplete');
    this.#ended(at);
    return at;
  }

  #text(chunk: Uint8Array, from: number): number {
    let at = from;
    const { length } = chunk;
    for (;;) {
      while (at < length && isPlain[chunk[at] as number]) at += 1;
      // Most escapes are short, and whole in their chunk.
      if (chunk[at] !== backslash || at + 1 >= length || !isEscape[chunk[at + 1] as number]) break;
      at += 2;
    }
    this.#gather(chunk, from, at);
    if (at === length) return at;
    if (chunk[at] === backslash) {
      this.#state = 'escape';
      this.#gather(chunk, at, at + 1);
    } else if (chunk[at] !== quote) throw new NotJson('a text has a control character');
    else if (!this.#isName) this.#ended(at + 1);
    else this.#endName();
    return at + 1;
  }

  #gather(chunk: Uint8Array, from: number, to: number): void {
    if (!this.#isName || !this.#listener.wantsNames) return;
    const length = to - from;
    if (this.#nameLength + length <= nameBytes) this.#name.set(chunk.subarray(from, to), this.#nameLength);
    this.#nameLength += length;
  }

  #endName(): void {
    this.#state = 'colon';
    if (!this.#listener.wantsNames) return;
    const isLong = this.#nameLength > nameBytes;
    this.#listener.name(
      isLong ? undefined : String(parseForeignJson(`"${this.#name.toString('utf8', 0, this.#nameLength)}"`)),
    );
  }

  #isMark(byte: number): boolean {
    const isMark = byte === byteOrderMark[this.#markBytes];
    if (!isMark && this.#markBytes > 0) throw new NotJson('a byte order mark is incomplete');
    this.#markBytes = isMark ? this.#markBytes + 1 : 3;
    return isMark;
  }
}
