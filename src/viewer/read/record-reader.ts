import { getHeapStatistics } from 'node:v8';
import { viewedRecords } from '../../bounds/anyone.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import { weightOf } from '../../parse-json.ts';
import { readRecord } from '../../record/read-record.ts';
import { commandsOf } from '../../record/timeline.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import { usageOf } from '../../record/usage.ts';
import { reasonOf } from '../model/explain.ts';
import type { TrialFigures } from '../model/shapes.ts';

type Summary = Omit<TrialFigures, 'key'>;

/** Reads records of trials. Keeps the last ones, because a page asks for many parts of one record. */
export class RecordReader {
  readonly #ledger: Ledger;
  readonly #keptBytes: number;
  /** In the order of their last use. `weight` is the most bytes of the heap that a record takes. */
  readonly #kept = new Map<string, { record: TrialRecord; weight: number }>();
  readonly #summaries = new Map<string, Summary>();

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

  /** The summary of a record; if the record cannot be read, the summary's reason says so. */
  summary(sha256: string): Summary {
    const known = this.#summaries.get(sha256);
    if (known) return known;
    // A part of a long text keeps all of it in memory, and a copy does not.
    const summary = structuredClone(this.#summarize(sha256));
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
