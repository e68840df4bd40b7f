import { ByteStore } from '../../base/byte-store.ts';
import { longestDocument, parseForeignJson } from '../../base/parse-json.ts';
import { serviceAnswers } from '../../bounds/service.ts';

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
const openList = 0x5b;
const closeList = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;
const lessThan = 0x3c;
const space = 0x20;

/** A page has a list of runs, and each of these has a list of trials. */
const lists: readonly string[] = ['runs', 'trials'];
/** One more than the name of a list has if all of it is written as `\u0072`. */
const nameBytes = 6 * 'trials'.length + 1;

/** What a page is cut into: trials, runs without the entries of `trials`, a page without those of `runs`. */
export type PieceKind = 'page' | 'run' | 'trial';
const kinds: readonly PieceKind[] = ['page', 'run', 'trial'];

/** The answer cannot be a page, so the rest of it need not be read. */
export class NotJson extends Error {}

interface Piece {
  store: ByteStore;
  isTooLarge: boolean;
  /** How many lists and objects are open where it begins. */
  depth: number;
  /** Whether it may be no piece, because the list may have no entries. */
  isMissing: boolean;
}

/**
 * Cuts a page of runs, as it arrives, into documents that are small enough to be parsed. A trial comes before
 * its run. It only tells texts from brackets, so what is not JSON is found by the parser.
 */
export class PageCutter {
  /** The most bytes of a piece. */
  readonly #most = Math.min(serviceAnswers.bytes.piece, longestDocument());
  readonly #handOut: (kind: PieceKind, json: Buffer | undefined) => void;
  /** The page, and the run and the trial that are open. */
  readonly #pieces: Piece[] = [pieceAt(0, false)];
  #depth = 0;
  #isText = false;
  #isEscaped = false;
  /** The beginning of the last text that may be a name. */
  #text = Buffer.alloc(0);
  /** The name of the member whose value is read. */
  #member: string | undefined;

  /** `handOut` gets undefined for a piece that is too large. */
  constructor(handOut: (kind: PieceKind, json: Buffer | undefined) => void) {
    this.#handOut = handOut;
  }

  /** Throws {@link NotJson}, and what `handOut` throws. */
  write(chunk: Uint8Array): void {
    let from = 0;
    const copyTo = (end: number) => {
      this.#add(chunk.subarray(from, end));
      from = end;
    };
    for (let at = 0; at < chunk.length; at += 1) {
      if (this.#isText) {
        at = this.#readText(chunk, at);
        continue;
      }
      const byte = chunk[at] as number;
      const piece = this.#piece;
      const isInObject = this.#depth === piece.depth + 1;
      const isInList = this.#depth === piece.depth && this.#pieces.length > 1;
      switch (byte) {
        case quote:
          piece.isMissing = false;
          this.#isText = true;
          this.#text = Buffer.alloc(0);
          break;
        case colon:
          piece.isMissing = false;
          if (isInObject) this.#member = nameOf(this.#text);
          break;
        case openList:
        case openObject:
          piece.isMissing = false;
          this.#depth += 1;
          if (!isInObject || byte === openObject || !this.#isList()) break;
          copyTo(at + 1);
          this.#begin(true);
          break;
        case comma:
          this.#member = undefined;
          if (!isInList) break;
          piece.isMissing = false;
          copyTo(at);
          this.#end();
          this.#begin(false);
          from = at + 1;
          break;
        case closeList:
        case closeObject:
          if (isInList) {
            copyTo(at);
            this.#end();
          }
          this.#depth -= 1;
          break;
        default:
          if (this.#depth === 0 && isForeign(byte)) throw new NotJson();
          if (!isBlank(byte)) piece.isMissing = false;
      }
    }
    copyTo(chunk.length);
  }

  /** Call this at the end of the page. */
  finish(): void {
    if (this.#pieces.length > 1) throw new NotJson();
    this.#end();
  }

  get #piece(): Piece {
    return this.#pieces.at(-1) as Piece;
  }

  #add(bytes: Uint8Array): void {
    const piece = this.#piece;
    piece.isTooLarge ||= piece.store.size + bytes.length > this.#most;
    if (piece.isTooLarge) piece.store.clear();
    else piece.store.add(bytes);
  }

  /** Returns where the text ends, or the chunk. */
  #readText(chunk: Uint8Array, from: number): number {
    let begin = this.#isEscaped ? from + 1 : from;
    let at = begin;
    do {
      const end = chunk.indexOf(quote, begin);
      at = end === -1 ? chunk.length : end;
      this.#isEscaped = isEscaped(chunk, begin, at);
      begin = at + 1;
    } while (this.#isEscaped && at < chunk.length);
    this.#isText = at >= chunk.length;
    if (this.#depth === this.#piece.depth + 1 && this.#text.length < nameBytes)
      this.#text = Buffer.concat([this.#text, chunk.subarray(from, Math.min(at, from + nameBytes))]);
    return at;
  }

  /** Whether the member that is read is the list of runs, or that of a run's trials. */
  #isList(): boolean {
    return this.#member !== undefined && this.#member === lists[this.#pieces.length - 1];
  }

  #begin(isMissing: boolean): void {
    this.#member = undefined;
    this.#pieces.push(pieceAt(this.#depth, isMissing));
  }

  #end(): void {
    const { store, isTooLarge, isMissing } = this.#pieces.pop() as Piece;
    if (isMissing) return;
    this.#handOut(kinds[this.#pieces.length] as PieceKind, isTooLarge ? undefined : store.take());
  }
}

function pieceAt(depth: number, isMissing: boolean): Piece {
  return { store: new ByteStore(), isTooLarge: false, depth, isMissing };
}

/** Whether an odd number of backslashes stands before a place. */
function isEscaped(chunk: Uint8Array, from: number, place: number): boolean {
  let before = place;
  while (before > from && chunk[before - 1] === backslash) before -= 1;
  return (place - before) % 2 === 1;
}

function nameOf(text: Buffer): string | undefined {
  try {
    return parseForeignJson(`"${text}"`) as string;
  } catch {
    return undefined;
  }
}

/** Whether no JSON begins with this byte, but a web page or a compressed answer does. */
function isForeign(byte: number): boolean {
  return byte === lessThan || (byte < space && !isBlank(byte));
}

function isBlank(byte: number): boolean {
  return byte === space || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
