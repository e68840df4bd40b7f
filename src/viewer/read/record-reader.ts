import { getHeapStatistics } from 'node:v8';
import { weightOf } from '../../base/parse-json.ts';
import { viewedRecords } from '../../bounds/anyone.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { readRecord } from '../../record/read-record.ts';
import type { TrialRecord } from '../../record/trial-record.ts';

/** Reads records of trials. Keeps the last ones, because a page asks for many parts of one record. */
export class RecordReader {
  readonly #ledger: Ledger;
  readonly #keptBytes: number;
  /** In the order of their last use. `weight` is the most bytes of the heap that a record takes. */
  readonly #kept = new Map<string, { record: TrialRecord; weight: number }>();

  /** @param keptBytes bytes of the heap that the records may take; the last one stays whatever its size */
  constructor(ledger: Ledger, keptBytes = getHeapStatistics().heap_size_limit * viewedRecords.bytes.kept) {
    this.#ledger = ledger;
    this.#keptBytes = keptBytes;
  }

  /** The most bytes of the heap that the kept records take. */
  get weight(): number {
    return this.#kept.values().reduce((sum, { weight }) => sum + weight, 0);
  }

  /** Throws as `blobs.read` and `readRecord` do. */
  read(sha256: string): TrialRecord {
    const entry = this.#kept.get(sha256) ?? this.#load(sha256);
    this.#kept.delete(sha256);
    this.#kept.set(sha256, entry);
    return entry.record;
  }

  /** Reads a record after making room for it. */
  #load(sha256: string): { record: TrialRecord; weight: number } {
    const { blobs } = this.#ledger;
    const weight = weightOf(blobs.read(sha256).toString('utf8'));
    let total = this.weight + weight;
    for (const [oldest, { weight: freed }] of this.#kept) {
      if (total <= this.#keptBytes) break;
      this.#kept.delete(oldest);
      total -= freed;
    }
    return { record: readRecord(blobs.readClean(sha256), 'the record'), weight };
  }
}
