import { inputError, OffsiteError } from '../base/offsite-error.ts';
import type { RunKey, StoredBatch, StoredRun } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { daemonLock } from '../ledger/queue.ts';
import { lockOfSet, type StoredSet } from '../ledger/sets.ts';
import type { OpenStart } from '../ledger/starts.ts';
import { detailsOf, type StoredTrial } from '../ledger/trial-rows.ts';
import { type TrialRecord, voidRecord } from '../record/trial-record.ts';
import { finishedTrial } from '../trial/report.ts';
import { notResumable, type OpenBatch, openBatch } from './batch-run.ts';
import { type Claims, isGone, NotClaimed } from './claims.ts';
import type { Resumable } from './run-set.ts';
import type { FoundRunDetails } from './specify.ts';
import { lostBatch, pullSetups, type StartParts } from './start-batch.ts';

export interface AbandonParts extends Pick<StartParts, 'ledger' | 'client' | 'clock' | 'service'> {
  claims: Claims;
  /** Whether to end everything in the ledger alone: the open trials are not reported to the service. */
  unreported: boolean;
  /**
   * Has the daemon of this data folder cancel a batch or run, by the service's id, and end its trials. Throws
   * if the daemon cannot, or still has some.
   */
  letGo(id: string): Promise<void>;
}

/** What became of what was abandoned. */
export interface Abandoned {
  /** The service's ids of the batches that ended. */
  batches: string[];
  /** Trials that ended as void; their reports are in the outbox. */
  voided: number;
  /** Trials that ended in the ledger alone. */
  withdrawn: number;
  /** Trials that other agents have, or have ended. */
  elsewhere: number;
  /** Starts without an answer for which no batch is known. */
  unknownStarts: number;
  /** Parts of a set that are never started. */
  unstarted: number;
}

/**
 * Ends a batch, a set, or a start without an answer, that nobody will continue: each trial without a result
 * is stored as void, with its report. The daemon lets go of what it has. Undefined if another process works
 * on it. Throws the errors of the calls to the service, and `NOT_RESUMABLE`. After an error, everything that
 * has not ended can still be resumed or abandoned.
 *
 * @param only the run of a batch to end; the others stay
 */
export async function abandon(
  what: Resumable,
  parts: AbandonParts,
  signal: AbortSignal,
  only?: Pick<StoredRun, 'key' | 'id'>,
): Promise<Abandoned | undefined> {
  const ended = nothingAbandoned();
  const isFree =
    what.kind === 'set'
      ? await abandonSet(what.set, parts, ended, signal)
      : await abandonOne(what.kind === 'batch' ? what.batch : what.start, parts, ended, signal, only);
  return isFree ? ended : undefined;
}

async function abandonSet(
  set: StoredSet,
  parts: AbandonParts,
  ended: Abandoned,
  signal: AbortSignal,
): Promise<boolean> {
  const { ledger } = parts;
  const lock = ledger.takeLock(lockOfSet(set.id));
  if (!lock) return false;
  using _lock = lock;
  for (const { start, batch } of ledger.sets.parts(set.key)) {
    if (batch?.state === 'finished') continue;
    const begun = batch ?? (start?.state === 'asking' ? ledger.starts.byKey(start.key) : undefined);
    if (!begun) ended.unstarted++;
    else if (!(await abandonOne(begun, parts, ended, signal))) return false;
  }
  ledger.sets.abandon(set.key);
  lock.remove();
  return true;
}

/** Returns false if another process works on it. */
async function abandonOne(
  one: StoredBatch | OpenStart,
  parts: AbandonParts,
  ended: Abandoned,
  signal: AbortSignal,
  only?: Pick<StoredRun, 'key' | 'id'>,
): Promise<boolean> {
  const { ledger, unreported } = parts;
  if (one.lock === undefined) throw notResumable('id' in one ? `batch ${one.id}` : 'the start');
  const lock = ledger.takeLock(one.lock);
  if (!lock) {
    if (one.lock !== daemonLock || !('id' in one)) return false;
    await abandonUnderDaemon(one, parts, ended, signal, only);
    return true;
  }
  using _lock = lock;
  if ('id' in one) {
    ended.batches.push(one.id);
    if (unreported) ended.withdrawn += closeBatch(one, ledger, only?.key);
    else await voidBatch(openBatch(one, ledger), one.lock, parts, ended, signal, only?.key);
  } else if (unreported) {
    ledger.starts.unknown(one.key, 'abandoned');
    ended.unknownStarts++;
  } else {
    const found = await lostBatch(one, parts, signal).catch((error) => {
      // The ledger now says that several batches fit. None of them is changed.
      if (error instanceof OffsiteError && error.code === 'START_AMBIGUOUS') return undefined;
      throw error;
    });
    if (found) {
      ended.batches.push(found.id);
      await voidBatch(found, one.lock, parts, ended, signal);
    } else ended.unknownStarts++;
  }
  // A later daemon takes the daemon's lock again. The lock of a batch is never taken again.
  if (one.lock !== daemonLock && !only) lock.remove();
  return true;
}

/** The daemon keeps its lock: it cancels the trials, which it then leaves alone, and they end here. */
async function abandonUnderDaemon(
  stored: StoredBatch,
  parts: AbandonParts,
  ended: Abandoned,
  signal: AbortSignal,
  only: Pick<StoredRun, 'key' | 'id'> | undefined,
): Promise<void> {
  const { ledger, unreported } = parts;
  const batch = openBatch(stored, ledger);
  // The daemon would pull later what is missing, and run it.
  if (!unreported) await pullSetups(batch, parts, signal);
  await parts.letGo(only?.id ?? stored.id);
  ended.batches.push(stored.id);
  const canceled = ledger.queue.canceled(stored.key, only?.key);
  if (unreported) ended.withdrawn += canceled.length;
  else await voidTrials(canceled, modelsOf(batch), parts, ended, signal);
}

function closeBatch({ key, service, lock = '' }: StoredBatch, ledger: Ledger, only?: RunKey): number {
  ledger.queue.interrupt({ service, lock, batch: key, origin: 'planned' });
  return ledger.batches.close(key, only);
}

async function voidBatch(
  batch: OpenBatch,
  lock: string,
  parts: AbandonParts,
  ended: Abandoned,
  signal: AbortSignal,
  only?: RunKey,
): Promise<void> {
  const { ledger, service } = parts;
  // Only the service knows which trials a run has.
  await pullSetups(batch, parts, signal);
  ledger.queue.interrupt({ service, lock, batch: batch.key, origin: 'planned' });
  const open = ledger.queue
    .ofBatch(batch.key)
    .filter(({ result, run }) => result === undefined && (only === undefined || run === only));
  // Canceled trials are not queued again first: they would run if this fails.
  const canceled = ledger.queue.canceled(batch.key, only);
  await voidTrials([...open, ...canceled], modelsOf(batch), parts, ended, signal);
}

async function voidTrials(
  trials: readonly StoredTrial[],
  modelOf: (trial: StoredTrial) => string | undefined,
  parts: AbandonParts,
  ended: Abandoned,
  signal: AbortSignal,
): Promise<void> {
  for (const trial of trials) {
    signal.throwIfAborted();
    if (await voidTrial(trial, modelOf(trial) ?? '', parts, signal)) ended.voided++;
    else {
      parts.ledger.queue.withdraw([trial.key], 'elsewhere');
      ended.elsewhere++;
    }
  }
}

/** The model of each trial of a batch. */
function modelsOf({ runs }: OpenBatch): (trial: StoredTrial) => string | undefined {
  const models = new Map(runs.map(({ key, variant }) => [key, variant.model]));
  return ({ run }) => models.get(run);
}

/** Ends canceled trials of runs that the daemon found: each is stored as void, with its report. */
export async function abandonCanceled(
  trials: readonly StoredTrial[],
  parts: AbandonParts,
  signal: AbortSignal,
): Promise<Abandoned> {
  const ended = nothingAbandoned([...new Set(trials.map(({ batchId }) => batchId))]);
  const modelOf = (trial: StoredTrial) => detailsOf<FoundRunDetails>(trial).variant?.model;
  if (parts.unreported) ended.withdrawn = trials.length;
  else await voidTrials(trials, modelOf, parts, ended, signal);
  return ended;
}

function nothingAbandoned(batches: string[] = []): Abandoned {
  return { batches, voided: 0, withdrawn: 0, elsewhere: 0, unknownStarts: 0, unstarted: 0 };
}

/**
 * Stores a trial as void, with its report. Returns false if another agent has the trial. Throws `RUN_GONE`
 * if the service does not have its run.
 */
async function voidTrial(
  trial: StoredTrial,
  model: string,
  { ledger, claims, clock }: AbandonParts,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    using lease = await claims.acquire(trial, signal);
    const attempt = ledger.trials.beginAttempt(trial.key);
    const result = resultOfAbandoned(clock.now(), attempt.number > 1);
    const finished = finishedTrial(result, { ...trial, model }, attempt, lease.number);
    await ledger.trials.finish(attempt, finished);
    lease.settle();
    return true;
  } catch (error) {
    if (!(error instanceof NotClaimed)) throw error;
    if (isGone(error.cause)) throw runGone(trial.runId);
    return false;
  }
}

function runGone(run: string): OffsiteError {
  return inputError('RUN_GONE', `the service has no run ${run}, so its open trials cannot be reported`, {
    hint: '`--unreported` ends them on this machine only.',
  });
}

/** @param hadBegun whether an attempt was interrupted: what the attempt used is lost with its process */
function resultOfAbandoned(now: number, hadBegun: boolean): TrialRecord {
  const began = hadBegun ? 'it was interrupted, and ' : 'it did not run: ';
  const message = `${began}its batch was abandoned`;
  const cause = { kind: 'infrastructure', phase: 'sandbox', message } as const;
  return voidRecord(now, cause, { modelUnmeasured: hadBegun });
}
