import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { Logger } from 'pino';
import { infrastructureError, messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { queueTickets } from '../../bounds/suite.ts';
import { Forbidden, Unauthorized } from '../../client/refusal.ts';
import { daemonLock } from '../../ledger/queue.ts';
import { checkModels } from '../../trial/run/models.ts';
import { type OpenBatch, openBatch } from '../batch-run.ts';
import type { ConfigRevision } from '../config-revision.ts';
import { checkOnEngines, type SomeEngines } from '../engines/check.ts';
import { lostBatch, pullSetups, type StartParts, startUnder, withPrompt } from '../start-batch.ts';
import { queuedFiles, readTicket, refuseTicket } from './ticket.ts';

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

  /**
   * Completes what an earlier daemon of this data folder left half done. Pulls the setups of batches that it
   * started, and gives up calls whose answer was lost if somebody removed their file from the queue. Resolves
   * with whether all batches can continue; one that cannot does not hold up the others.
   */
  async #recover(signal: AbortSignal): Promise<boolean> {
    const { ledger, service, log } = this.#parts;
    const isOwn = (one: { service: string; lock: string | undefined }) =>
      one.service === service && one.lock === daemonLock;
    for (const start of ledger.starts.open().filter(isOwn))
      if (start.file === undefined || !existsSync(start.file))
        ledger.starts.unknown(start.key, 'its file was removed');
    let isWhole = true;
    for (const batch of ledger.batches.open().filter(isOwn)) {
      try {
        await pullSetups(openBatch(batch, ledger), this.#parts, signal);
      } catch (error) {
        signal.throwIfAborted();
        isWhole = false;
        // The same line every few seconds would hide the other lines.
        if (!this.#logged.has(batch.id))
          log.error({ batch: batch.id, reason: messageOf(error) }, 'a batch cannot continue yet');
        this.#logged.add(batch.id);
      }
    }
    return isWhole;
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
    const files = queuedFiles(this.#parts.ledger.dataFolder);
    return this.#last === 'begun' && files.length === 0;
  }
}

interface QueueFolderParts extends StartParts, SomeEngines {
  /** The current one. */
  revision(): ConfigRevision;
  log: Logger;
  /** Called when the queue has new trials. */
  started(): void;
  /** Called when a file was refused for good. */
  refused(reason: string): void;
}

/**
 * Starts the batches of the files in the queue folder, one after another, each only once: the ledger knows
 * for which files the service has been asked. Resolves with the milliseconds until the next round; rejects if
 * the service or the engine is down.
 */
export async function startQueued(parts: QueueFolderParts, signal: AbortSignal): Promise<number> {
  const { ledger, log } = parts;
  const failures: unknown[] = [];
  for (const file of queuedFiles(ledger.dataFolder)) {
    signal.throwIfAborted();
    try {
      const batch = await startTicket(file, parts, signal);
      await pullSetups(batch, parts, signal);
      log.info({ batch: batch.id, file, runs: batch.runs.length }, 'started a batch from the queue');
      parts.started();
      await rm(file, { force: true });
    } catch (error) {
      signal.throwIfAborted();
      if (!isFinal(error)) {
        failures.push(error);
        continue;
      }
      const refused = await refuseTicket(ledger.dataFolder, file, reasonOf(error));
      log.error({ file: refused, code: error.code, reason: error.message }, 'refused a file in the queue');
      parts.refused(error.message);
    }
  }
  if (failures.length > 0) throw failures[0];
  return queueTickets.time.look;
}

/** The ticket's batch: started now, or earlier by a daemon that died before it removed the file. */
async function startTicket(file: string, parts: QueueFolderParts, signal: AbortSignal): Promise<OpenBatch> {
  const { ledger } = parts;
  const plan = readTicket(file);
  const before = ledger.starts.ofFile(file);
  if (before) {
    const batch = ledger.batches.ofStart(before.key);
    if (batch) return openBatch(batch, ledger);
    const { state } = before;
    const lost = state === 'asking' ? await lostBatch(before, parts, signal) : undefined;
    if (lost) return lost;
    if (state === 'asking' || state === 'unknown') throw startUnknown();
  }
  await checkModels(plan, parts.revision());
  await checkOnEngines(parts, plan, signal);
  return startUnder(daemonLock, await withPrompt(plan, parts.client, signal), parts, signal);
}

function startUnknown(): OffsiteError {
  const message = 'it is unknown whether the service started the batch, and it lists no batch that fits';
  return infrastructureError('START_UNKNOWN', message, {
    hint: 'Use `offsite service runs` to see whether the batch exists; if not, enqueue the suite again.',
  });
}

/** Whether a retry cannot help. */
function isFinal(error: unknown): error is OffsiteError {
  // The user can replace a key that is refused, or that may not start batches.
  const isOfKey = error instanceof Unauthorized || error instanceof Forbidden;
  if (!(error instanceof OffsiteError) || isOfKey) return false;
  return error.kind === 'input' || error.code === 'START_UNKNOWN' || error.code === 'START_AMBIGUOUS';
}

function reasonOf({ code, message, hint }: OffsiteError): string {
  const remedy =
    code === 'TICKET_BAD' ? [] : ['If only this machine lacked something, move the file back into queue/.'];
  return [message, ...(hint === undefined ? [] : [hint]), ...remedy].join('\n');
}
