import { existsSync } from 'node:fs';
import type { Client } from '../../client/client.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { daemonLock } from '../../ledger/queue.ts';
import { messageOf } from '../../offsite-error.ts';
import { openBatch } from '../batch-run.ts';
import { pullSetups } from '../pull.ts';
import { type QueueFolderParts, startQueued } from './queue-folder.ts';
import { queuedFiles } from './ticket.ts';

/**
 * The batches that this data folder is to start: those of the queue's files, and those that an earlier daemon
 * had begun to start.
 */
export class BatchQueue {
  readonly #parts: QueueFolderParts;
  #isRecovered = false;
  /** Batches that cannot continue yet, and were logged. */
  readonly #told = new Set<string>();
  /** How the last look at all of it ended. */
  #last: 'none' | 'begun' | 'stuck' = 'none';

  constructor(parts: QueueFolderParts) {
    this.#parts = parts;
  }

  /**
   * Starts what can be started. Resolves with the milliseconds until the next look; rejects as {@link
   * startQueued}.
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
    const unmended = await recover(this.#parts, signal);
    for (const trouble of unmended) {
      // Every few seconds the same would only hide the rest.
      if (!this.#told.has(trouble.batch)) this.#parts.log.error(trouble, 'a batch cannot continue yet');
      this.#told.add(trouble.batch);
    }
    return unmended.length === 0;
  }

  /** Whether every batch could be started when it was last looked. */
  get isBegun(): boolean {
    return this.#last === 'begun';
  }

  /** Whether a look brought all that could be started, and nothing has come since. */
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
interface Unmended {
  batch: string;
  reason: string;
}

/**
 * Mends what an earlier daemon of the data folder left half done: pulls the setups of batches that it had
 * started, and gives up calls whose answer was lost and whose file in the queue somebody has removed. A batch
 * that cannot be mended holds up no other: resolves with those there are.
 */
async function recover(parts: RecoverParts, signal: AbortSignal): Promise<Unmended[]> {
  const { ledger, service } = parts;
  for (const start of ledger.starts.open()) {
    if (start.service !== service || start.lock !== daemonLock) continue;
    if (start.file === undefined || !existsSync(start.file))
      ledger.starts.unknown(start.key, 'its file was removed');
  }
  const unmended: Unmended[] = [];
  for (const batch of ledger.batches.open()) {
    if (batch.service !== service || batch.lock !== daemonLock) continue;
    try {
      await pullSetups(openBatch(batch, ledger), parts, signal);
    } catch (error) {
      signal.throwIfAborted();
      unmended.push({ batch: batch.id, reason: messageOf(error) });
    }
  }
  return unmended;
}
