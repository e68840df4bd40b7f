import type { Ledger } from '../../ledger/ledger.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import { readRecord } from '../../record/read-record.ts';
import { commandsOf } from '../../record/timeline.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import { usageOf } from '../../record/usage.ts';
import { reasonOf } from '../model/explain.ts';
import type { TrialSummary } from '../model/shapes.ts';

/** How many bytes of records, as they are stored, stay in memory. The last record stays whatever its size. */
const keptBytes = 256 * 1024 ** 2;

type Summary = Omit<TrialSummary, 'key'>;

/** Reads records of trials. Keeps the last ones, because a page asks for many parts of one record. */
export class RecordReader {
  readonly #ledger: Ledger;
  /** In the order of their last use. */
  readonly #kept = new Map<string, { record: TrialRecord; byteSize: number }>();
  readonly #summaries = new Map<string, Summary>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** Throws as `blobs.read` and `readRecord` do. */
  read(sha256: string): TrialRecord {
    const kept = this.#kept.get(sha256);
    this.#kept.delete(sha256);
    const { blobs } = this.#ledger;
    const entry = kept ?? {
      record: readRecord(blobs.readClean(sha256), 'the record'),
      byteSize: blobs.stat(sha256)?.byteSize ?? 0,
    };
    this.#kept.set(sha256, entry);
    let total = this.#kept.values().reduce((sum, { byteSize }) => sum + byteSize, 0);
    for (const [oldest, { byteSize }] of this.#kept) {
      if (total <= keptBytes || oldest === sha256) break;
      this.#kept.delete(oldest);
      total -= byteSize;
    }
    return entry.record;
  }

  /** The summary of a record; if the record cannot be read, its reason says so. */
  summary(sha256: string): Summary {
    const known = this.#summaries.get(sha256);
    if (known) return known;
    const summary = this.#summarize(sha256);
    this.#summaries.set(sha256, summary);
    return summary;
  }

  #summarize(sha256: string): Summary {
    try {
      const record = readRecord(this.#ledger.blobs.readClean(sha256), 'the record');
      const usage = usageOf(record);
      return {
        reason: reasonOf(record),
        durationMs: record.finishedAt - record.startedAt,
        costUsd: usage?.costUsd,
        totalTokens: usage?.totalTokens,
        commands: commandsOf(record)?.length,
      };
    } catch (error) {
      if (error instanceof OffsiteError || error instanceof SyntaxError) return { reason: messageOf(error) };
      throw error;
    }
  }
}
