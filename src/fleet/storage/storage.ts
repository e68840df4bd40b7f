/** One result in the index of a batch. */
export interface IndexedResult {
  run: string;
  ordinal: number;
  /** The hash of the record, as JSON. */
  record: string;
}

/**
 * What the machines of a fleet share: contents under their SHA-256, and for each batch an index of its
 * results. Every operation can be repeated. Hashes are 64 lower-case hexadecimal digits.
 */
export interface FleetStorage {
  has(sha256: string): Promise<boolean>;
  /** Stores a content that the caller has hashed. */
  put(sha256: string, content: Uint8Array): Promise<void>;
  /**
   * A content of at most the given number of bytes, checked against its hash. Throws `FLEET_CONTENT_MISSING`
   * and `FLEET_CONTENT_DAMAGED`.
   */
  get(sha256: string, most?: number): Promise<Buffer>;
  /** Adds a result to the index of a batch, or replaces it. */
  addResult(batch: string, result: IndexedResult): Promise<void>;
  /** The index of a batch, in no order. */
  results(batch: string): AsyncIterable<IndexedResult>;
  /** Keeps a note under a name, in place of the one before. */
  putNote(kind: NoteKind, name: string, note: unknown): Promise<void>;
  /** The note under a name, unchecked JSON; undefined if there is none. */
  note(kind: NoteKind, name: string): Promise<unknown>;
}

/**
 * `batches`: the document of each batch that a fleet was given. `reruns`: the document of each run that a
 * rerun added to such a batch, under its {@link rerunName}. `workers`: what each worker offers.
 */
export type NoteKind = 'batches' | 'reruns' | 'workers';

export function rerunName(batch: string, run: string): string {
  return JSON.stringify([batch, run]);
}
