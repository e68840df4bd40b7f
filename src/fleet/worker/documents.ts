import { fleetMessages, fleetStorage } from '../../bounds/fleet.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';
import { readRecord } from '../../record/read-record.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import { usageOf } from '../../record/usage.ts';
import type { Config } from '../../suite/config-file.ts';
import { type FleetDocument, readDocument, requirePlanned, type TrialDocument } from '../document.ts';
import { queueFor } from '../placement.ts';
import type { FleetStorage } from '../storage/storage.ts';
import type { PlacedTrial, TrialSummary } from '../workflow/messages.ts';
import type { PageOrder } from './orders.ts';

export interface DocumentsParts {
  storage: FleetStorage;
  config: () => Config;
  /** Where a build context is unpacked. */
  folderOf: (context: string) => string;
}

/** Reads the documents of batches, and keeps the ones that were used last. */
export class Documents {
  readonly #parts: DocumentsParts;
  readonly #kept = new Map<string, Promise<TrialDocument>>();

  constructor(parts: DocumentsParts) {
    this.#parts = parts;
  }

  /** Throws what the storage throws, and as {@link readDocument} does. */
  get(sha256: string): Promise<TrialDocument> {
    const document = this.#kept.get(sha256) ?? this.#read(sha256);
    this.#kept.delete(sha256);
    this.#kept.set(sha256, document);
    for (const [oldest] of this.#kept) {
      if (this.#kept.size <= fleetStorage.count.documents) break;
      this.#kept.delete(oldest);
    }
    document.catch(() => this.#kept.delete(sha256));
    return document;
  }

  /** The document of a batch. Also throws `FLEET_DOCUMENT_UNREADABLE` for any other document. */
  async planned(sha256: string): Promise<FleetDocument> {
    return requirePlanned(await this.get(sha256));
  }

  async #read(sha256: string): Promise<TrialDocument> {
    const { storage, config, folderOf } = this.#parts;
    return readDocument(await storage.get(sha256, fleetStorage.bytes.document), config(), folderOf);
  }
}

/** A part of the list of a batch's trials, in the order of its runs. */
export function placedTrials(
  { runs, trials }: FleetDocument,
  { list, taskQueue, pool }: Pick<PageOrder, 'list' | 'taskQueue' | 'pool'>,
): PlacedTrial[] {
  const { first, count } = list;
  const ends: number[] = [];
  for (const run of runs) ends.push((ends.at(-1) ?? 0) + (run.trials ?? trials));
  const last = ends.at(-1) ?? 0;
  const most = Math.max(0, Math.min(count, fleetMessages.count.page, last - first));
  return Array.from({ length: most }, (_, index) => {
    const position = first + index;
    const at = ends.findIndex((end) => position < end);
    const run = runs[at];
    if (!run) throw new Error(`the batch has no trial ${position}`);
    const queue = queueFor(taskQueue, pool, run.needs);
    return { run: run.id, ordinal: position - (ends[at - 1] ?? 0), queue };
  });
}

/**
 * Puts a trial's record into the storage, after all contents that the record names. Resolves with the trial's
 * summary.
 */
export async function storeRecord(
  { result: sha256 = '' }: StoredTrial,
  { ledger, storage, worker }: { ledger: Ledger; storage: FleetStorage; worker: string },
): Promise<TrialSummary> {
  const { blobs } = ledger;
  const summary = summaryOf(readRecord(blobs.readJson(sha256)), sha256, worker);
  const content = blobs.read(sha256);
  for (const [named] of new Set(content.toString('utf8').matchAll(/[0-9a-f]{64}/g))) {
    // Records also name images, which are no contents of ours.
    const found = (await storage.has(named)) ? undefined : blobs.tryRead(named);
    if (found) await storage.put(named, found);
  }
  await storage.put(sha256, content);
  return summary;
}

function summaryOf(record: TrialRecord, sha256: string, worker: string): TrialSummary {
  const { verdict, cause, startedAt, finishedAt } = record;
  const { totalTokens: tokens, costUsd: usd } = usageOf(record) ?? {};
  return {
    verdict,
    ...(cause && { cause: cause.kind }),
    ms: finishedAt - startedAt,
    tokens,
    usd,
    record: sha256,
    worker,
  };
}
