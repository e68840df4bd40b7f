import { rm } from 'node:fs/promises';
import type { Logger } from 'pino';
import { queueTickets } from '../../bounds/suite.ts';
import { Unauthorized } from '../../client/refusal.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { daemonLock } from '../../ledger/queue.ts';
import { OffsiteError } from '../../offsite-error.ts';
import { checkSandboxes } from '../../trial/base-image.ts';
import { checkModels } from '../../trial/models.ts';
import { type OpenBatch, openBatch } from '../batch-run.ts';
import { pullSetups } from '../pull.ts';
import { lookFor, recordBatch, resolvePrompt, type StartParts, startUnder } from '../start-batch.ts';
import type { KnownPlan } from '../stored-plan.ts';
import { queuedFiles, readTicket, refuseTicket } from './ticket.ts';

export interface QueueFolderParts extends StartParts {
  engine: Engine;
  /** The one of the present configuration. */
  gateway(): Gateway;
  log: Logger;
  /** There is more to be run. */
  started(): void;
}

/**
 * Starts the batches of the files in the queue, one after another, each once: the ledger knows which file it
 * has asked the service to start. Resolves with the milliseconds until the next look; rejects where the
 * service or the engine is not there.
 */
export async function startQueued(parts: QueueFolderParts, signal: AbortSignal): Promise<number> {
  const { ledger, log } = parts;
  const failures: unknown[] = [];
  for (const file of await queuedFiles(ledger.dataFolder)) {
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
      log.error({ file: refused, code: error.code, reason: error.message }, 'refused a file of the queue');
    }
  }
  if (failures.length > 0) throw failures[0];
  return queueTickets.time.look;
}

/** The ticket's batch: started now, or by a daemon that died before it could take the file away. */
async function startTicket(file: string, parts: QueueFolderParts, signal: AbortSignal): Promise<OpenBatch> {
  const { ledger, engine } = parts;
  const known = readTicket(file);
  const before = ledger.starts.ofFile(file);
  if (before) {
    const batch = ledger.batches.ofStart(before.key);
    if (batch) return openBatch(batch, ledger);
    if (before.state === 'asking') return found(known, before, parts, signal);
    if (before.state === 'unknown') throw startUnknown();
  }
  await checkModels(known.plan, parts.gateway());
  const sandboxes = known.plan.variants.map(({ sandbox }) => sandbox);
  await checkSandboxes(engine, sandboxes, signal);
  const { prompt } = known.plan.suite;
  const text = prompt.kind === 'text' ? prompt.text : await resolvePrompt(known.plan, parts.client, signal);
  return startUnder(daemonLock, { plan: known.plan, prompt: text }, parts, signal);
}

/** The batch of a call whose answer was never read. */
async function found(
  known: KnownPlan,
  start: Parameters<typeof lookFor>[1],
  parts: QueueFolderParts,
  signal: AbortSignal,
): Promise<OpenBatch> {
  const started = await lookFor(known, start, parts, signal);
  if (started) return recordBatch(known, start, started, parts.ledger);
  parts.ledger.starts.unknown(start.key, 'the service lists no such batch');
  throw startUnknown();
}

function startUnknown(): OffsiteError {
  return new OffsiteError('nobody knows whether the service started the batch, and it lists none that fits', {
    code: 'START_UNKNOWN',
    kind: 'infrastructure',
    hint: 'Once the service works, `offsite runs` shows whether the batch is there; if not, enqueue the suite again.',
  });
}

/** Whether trying again cannot help. */
function isFinal(error: unknown): error is OffsiteError {
  // A refused key can be mended.
  if (!(error instanceof OffsiteError) || error instanceof Unauthorized) return false;
  return error.kind === 'input' || error.code === 'START_UNKNOWN' || error.code === 'START_AMBIGUOUS';
}

function reasonOf({ message, hint }: OffsiteError): string {
  return hint === undefined ? message : `${message}\n${hint}`;
}
