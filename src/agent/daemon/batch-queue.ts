import { existsSync } from 'node:fs';
import { messageOf } from '../../base/offsite-error.ts';
import type { Client } from '../../client/client.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { daemonLock } from '../../ledger/queue.ts';
import { openBatch } from '../batch-run.ts';
import { pullSetups } from '../pull.ts';
import { type QueueFolderParts, startQueued } from './queue-folder.ts';
import { queuedFiles } from './ticket.ts';

/**
 * Starts the batches of this data folder: those of the queue's files, and those that an earlier daemon began
 * to start.
 */
export class BatchQueue {
  readonly #parts: QueueFolderParts;
  #refused: { files: number; last: string | undefined } = { files: 0, last: undefined };
  #isRecovered = false;
  /** Batches that cannot continue yet and are already logged. */
  readonly #logged = new Set<string>();
  /** How the last round ended. */
  #last: 'none' | 'begun' | 'stuck' = 'none';

  constructor(parts: Omit<QueueFolderParts, 'refused'>) {
    const refused = (last: string) => {
      this.#refused = { files: this.#refused.files + 1, last };
    };
    this.#parts = { ...parts, refused };
  }

  /**
   * Starts the batches that can start. Resolves with the milliseconds until the next round; rejects as
   * {@link startQueued} does.
   */
  async begin(signal: AbortSignal): Promise<number> {
    try {
      this.#isRecovered ||= await this.#recover(signal);
      const waitMs = await startQueued(this.#parts, signal);
      this.#last = this.#isRecovered ? 'begun' : 'stuck';
      return waitMs;
    } catch (error) {
      this.#last = 'stuck';
      throw error;
    }
  }

  async #recover(signal: AbortSignal): Promise<boolean> {
    const stuck = await recover(this.#parts, signal);
    for (const one of stuck) {
      // The same line every few seconds would hide the other lines.
      if (!this.#logged.has(one.batch)) this.#parts.log.error(one, 'a batch cannot continue yet');
      this.#logged.add(one.batch);
    }
    return stuck.length === 0;
  }

  /** How many files were refused, and why the last one was. */
  get refused(): { files: number; last: string | undefined } {
    return this.#refused;
  }

  /** Whether every batch of a file that was not refused could be started in the last round. */
  get isBegun(): boolean {
    return this.#last === 'begun';
  }

  /** Whether the last round started every batch that can start, and no file has come since. */
  async isOver(): Promise<boolean> {
    if (this.#last === 'stuck') return true;
    const files = await queuedFiles(this.#parts.ledger.dataFolder);
    return this.#last === 'begun' && files.length === 0;
  }
}

export interface RecoverParts {
  ledger: Ledger;
  client: Client;
  /** The service's name in the ledger. */
  service: string;
}

/** A batch that cannot continue yet. */
interface StuckBatch {
  batch: string;
  reason: string;
}

/**
 * Completes what an earlier daemon of this data folder left half done. Pulls the setups of batches that it
 * started, and gives up calls whose answer was lost if somebody removed their file from the queue. Resolves
 * with the batches that cannot continue yet; they do not hold up the others.
 */
async function recover(parts: RecoverParts, signal: AbortSignal): Promise<StuckBatch[]> {
  const { ledger, service } = parts;
  for (const start of ledger.starts.open()) {
    if (start.service !== service || start.lock !== daemonLock) continue;
    if (start.file === undefined || !existsSync(start.file))
      ledger.starts.unknown(start.key, 'its file was removed');
  }
  const stuck: StuckBatch[] = [];
  for (const batch of ledger.batches.open()) {
    if (batch.service !== service || batch.lock !== daemonLock) continue;
    try {
      await pullSetups(openBatch(batch, ledger), parts, signal);
    } catch (error) {
      signal.throwIfAborted();
      stuck.push({ batch: batch.id, reason: messageOf(error) });
    }
  }
  return stuck;
}
