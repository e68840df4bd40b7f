import { ByteStore } from '../../byte-store.ts';
import { type JsonKind, JsonScanner } from './json-scanner.ts';

/**
 * What is kept of a JSON value. A list or an object where another kind was expected is kept without its
 * content.
 */
export type Kept =
  /** A text, number, boolean or null. */
  | 'scalar'
  /** Any value, with all that is in it. */
  | 'whole'
  /** These members of an object. */
  | { fields: ReadonlyMap<string, Kept> }
  /** Each entry of a list. */
  | { entries: Kept }
  /** The same, but the entries are handed out one by one, and the list is kept without content. */
  | { each: Kept };

/**
 * How much may be kept: of the document, and of each entry that is handed out. The room is read when the
 * document begins, and when an entry begins.
 */
export interface Room {
  bytes: number;
  values: number;
}

/** What was kept. */
export interface KeptJson {
  json: Buffer;
  /** How many values are in it. */
  values: number;
}

export interface FilterListener {
  /**
   * The list whose entries are handed out begins, or another value in its place. Earlier entries do not
   * count: if a name occurs twice in an object, V8 takes the last value.
   */
  list(): void;
  /** Undefined if there was not enough room for the entry. */
  entry(kept: KeptJson | undefined): void;
}

/** A list or an object of which something is kept. */
interface Frame {
  close: Buffer;
  fields: ReadonlyMap<string, Kept>;
  entry: Kept | undefined;
  isEach: boolean;
  isEmpty: boolean;
}

interface Output {
  room: Room;
  store: ByteStore;
  values: number;
  isFull: boolean;
}

const noFields: ReadonlyMap<string, Kept> = new Map();
const [comma, openObject, closeObject, openArray, closeArray] = [',', '{', '}', '[', ']'].map((sign) =>
  Buffer.from(sign),
) as [Buffer, Buffer, Buffer, Buffer, Buffer];

/**
 * Reads a JSON document in chunks and writes a smaller one, with the parts to keep. The rest is
 * checked and dropped as it arrives, however much it is.
 */
export class JsonFilter {
  readonly #kept: Kept;
  readonly #room: Readonly<Room>;
  readonly #listener: FilterListener | undefined;
  readonly #scanner: JsonScanner;
  readonly #document: Output;
  #output: Output;
  readonly #frames: Frame[] = [];
  /** The name of the next member in the innermost frame. */
  #name: string | undefined;
  /** How many values are open, counted from a value that is copied or dropped as a whole. */
  #opaque = 0;
  #isCopied = false;
  #chunk: Uint8Array = new Uint8Array();
  /** Where the part of the chunk begins that is being copied. */
  #from = 0;

  constructor(kept: Kept, room: Readonly<Room>, listener?: FilterListener) {
    this.#kept = kept;
    this.#room = room;
    this.#listener = listener;
    this.#document = emptyOutput(room);
    this.#output = this.#document;
    this.#scanner = new JsonScanner(this);
  }

  /** Throws `NotJson`. */
  write(chunk: Uint8Array): void {
    this.#chunk = chunk;
    this.#from = 0;
    this.#scanner.write(chunk);
    if (this.#isCopied) this.#emit(chunk.subarray(this.#from));
  }

  /** The smaller document; undefined if there was not enough room. Throws `NotJson` if it is incomplete. */
  finish(): KeptJson | undefined {
    this.#chunk = new Uint8Array();
    this.#from = 0;
    this.#scanner.end();
    return taken(this.#document);
  }

  get wantsNames(): boolean {
    return this.#opaque === 0 && (this.#frames.at(-1)?.fields.size ?? 0) > 0;
  }

  name(text: string | undefined): void {
    this.#name = text;
  }

  begin(kind: JsonKind, at: number): void {
    if (this.#opaque > 0) {
      this.#opaque += 1;
      if (this.#isCopied) this.#count();
      return;
    }
    const frame = this.#frames.at(-1);
    const kept = frame ? (frame.entry ?? frame.fields.get(this.#name ?? '')) : this.#kept;
    if (kept === undefined) {
      this.#opaque = 1;
      return;
    }
    if (frame) this.#separate(frame);
    if (isList(kept)) this.#listener?.list();
    this.#count();
    if (kind === 'scalar' || kept === 'whole') [this.#opaque, this.#isCopied, this.#from] = [1, true, at];
    else this.#open(kind, kept);
  }

  end(at: number): void {
    if (this.#opaque > 0) {
      this.#opaque -= 1;
      if (this.#opaque > 0) return;
      if (this.#isCopied) this.#emit(this.#chunk.subarray(this.#from, at));
      this.#isCopied = false;
    } else {
      const frame = this.#frames.pop();
      if (frame) this.#emit(frame.close);
    }
    if (this.#frames.at(-1)?.isEach) this.#handOut();
  }

  #open(kind: JsonKind, kept: Exclude<Kept, 'whole'>): void {
    const isObject = kind === 'object';
    this.#emit(isObject ? openObject : openArray);
    const isEach = !isObject && isList(kept);
    this.#frames.push({
      close: isObject ? closeObject : closeArray,
      fields: isObject && typeof kept === 'object' && 'fields' in kept ? kept.fields : noFields,
      entry: isObject || typeof kept !== 'object' ? undefined : entryOf(kept),
      isEach,
      isEmpty: true,
    });
  }

  /** Writes what stands before a member or an entry. */
  #separate(frame: Frame): void {
    if (frame.isEach) {
      this.#output = emptyOutput(this.#room);
      return;
    }
    if (!frame.isEmpty) this.#emit(comma);
    frame.isEmpty = false;
    if (frame.entry === undefined) this.#emit(Buffer.from(`${JSON.stringify(this.#name)}:`));
  }

  #handOut(): void {
    const output = this.#output;
    this.#output = this.#document;
    this.#listener?.entry(taken(output));
  }

  #count(): void {
    this.#output.values += 1;
    if (this.#output.values > this.#output.room.values) overflow(this.#output);
  }

  #emit(bytes: Uint8Array): void {
    const { isFull, store, room } = this.#output;
    if (isFull) return;
    if (store.size + bytes.length > room.bytes) overflow(this.#output);
    else store.add(bytes);
  }
}

function isList(kept: Kept): boolean {
  return typeof kept === 'object' && 'each' in kept;
}

function entryOf(kept: Exclude<Kept, 'scalar' | 'whole'>): Kept | undefined {
  if ('fields' in kept) return undefined;
  return 'each' in kept ? kept.each : kept.entries;
}

function emptyOutput(room: Readonly<Room>): Output {
  return { room: { ...room }, store: new ByteStore(), values: 0, isFull: false };
}

function overflow(output: Output): void {
  output.isFull = true;
  output.store.clear();
}

function taken({ store, values, isFull }: Output): KeptJson | undefined {
  return isFull ? undefined : { json: store.take(), values };
}
