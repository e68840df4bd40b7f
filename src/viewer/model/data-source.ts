import type { BatchInList, BatchPage, LedgerChanges, TrialPage } from './shapes.ts';

/** Names a trial's record: its result, or what one of its attempts found. */
export interface RecordReference {
  trial: number;
  attempt?: number | undefined;
}

/** Where the page takes its data from: a server, or the file that it is in. What is not there rejects. */
export interface DataSource {
  /** Newest first. */
  batches(signal?: AbortSignal): Promise<BatchInList[]>;
  batch(key: number, signal?: AbortSignal): Promise<BatchPage>;
  trial(reference: RecordReference, signal?: AbortSignal): Promise<TrialPage>;
  /**
   * A value of a record, as text. Values that are not texts are JSON.
   *
   * @param pointer its JSON pointer
   * @param limit characters; a longer text is cut in its middle
   */
  value(reference: RecordReference, pointer: string, limit?: number, signal?: AbortSignal): Promise<string>;
  /** A stored content. */
  blob(sha256: string, signal?: AbortSignal): Promise<Blob>;
  /**
   * Adds the batch of another exported page, until this page is closed. Resolves with the keys of the batch
   * that was here and of the added one. Absent where a server has the data.
   */
  add?(file: File): Promise<{ one: number; other: number }>;
  /** Calls `listener` after changes, until the signal aborts. Absent for data that cannot change. */
  watch?(
    listener: (changes: LedgerChanges) => void,
    onState: (state: WatchState) => void,
    signal: AbortSignal,
  ): void;
}

export type WatchState = 'live' | 'lost';
