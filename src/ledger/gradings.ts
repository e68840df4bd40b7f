import type { BlobStore } from './blobs.ts';
import { type Records, Table, type TrialKey } from './records.ts';
import type { Verdict } from './trials.ts';

/** A later grading of what a trial left. */
export interface StoredGrading {
  key: number;
  trial: TrialKey;
  /** Epoch milliseconds. */
  gradedAt: number;
  verdict: Verdict;
  /** The sha256 of the blob with the record. */
  result: string;
  /** The sha256 of all that said how to grade. */
  basis: string;
}

/** Later gradings. They are added to what a trial has, and replace nothing. */
export class Gradings extends Table {
  readonly #blobs: BlobStore;

  constructor(records: Records, blobs: BlobStore) {
    super(records);
    this.#blobs = blobs;
  }

  /** Stores a grading. When it resolves, the grading is on disk. */
  async add(
    trial: TrialKey,
    { verdict, record, basis }: { verdict: Verdict; record: unknown; basis: string },
  ): Promise<StoredGrading> {
    const result = await this.#blobs.putJson(record);
    const gradedAt = this.records.now();
    const key = this.records.transaction(() => {
      this.records.note({ subject: 'trial', key: trial, state: 'graded-again', detail: verdict });
      return this.records.insert('gradings', { trial, gradedAt, verdict, result, basis });
    });
    return { key, trial, gradedAt, verdict, result, basis };
  }

  /** The gradings of a trial, oldest first. */
  of(trial: TrialKey): StoredGrading[] {
    return this.records.select('SELECT * FROM gradings WHERE trial = ? ORDER BY key', trial);
  }
}
