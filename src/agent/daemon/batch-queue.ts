import { type QueueFolderParts, startQueued } from './queue-folder.ts';
import { recover } from './recover.ts';
import { queuedFiles } from './ticket.ts';

/** The batches that this data folder is to start: those of the queue's files, and those that an earlier daemon had begun to start. */
export class BatchQueue {
  readonly #parts: QueueFolderParts;
  #isRecovered = false;
  /** Batches that cannot be gone on with and were told of. */
  readonly #told = new Set<string>();
  /** How the last look at all of it ended. */
  #last: 'none' | 'begun' | 'stuck' = 'none';

  constructor(parts: QueueFolderParts) {
    this.#parts = parts;
  }

  /** Starts what can be started. Resolves with the milliseconds until the next look; rejects as {@link startQueued}. */
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
      if (!this.#told.has(trouble.batch)) this.#parts.log.error(trouble, 'cannot go on with a batch yet');
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
