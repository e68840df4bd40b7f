import { OffsiteError } from '../../base/offsite-error.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';
import type { PlannedReplay } from '../../suite/plan.ts';
import type { TrialSpec } from '../../trial/spec.ts';
import type { Admission } from '../admission.ts';
import type { BatchContext, BatchContexts, EngineContext } from '../batch-contexts.ts';
import { NotClaimed } from '../claims.ts';
import type { ConfigRevision } from '../config-revision.ts';
import { type Engines, Moved, type Seat } from '../engines/engines.ts';
import { type AttemptSignals, finishTrial } from '../finish-trial.ts';
import { plannedCassette } from '../ledger-cassette.ts';
import { type MachineCheck, specify } from '../specify.ts';
import type { Flight, WorkedTrial } from './flight.ts';
import type { Gate } from './gate.ts';
import type { TrialClaims } from './trial-claims.ts';
import { retryMs, type TrialsElsewhere, type WaitingRuns } from './waiting-runs.ts';
import type { AttemptEvent, WorkerParts } from './worker-parts.ts';

/** What the trials of a worker share. */
export interface TakeParts extends WorkerParts, UnfinishedParts {
  admission: Admission;
  batches: BatchContexts;
  check: MachineCheck;
  trialClaims: TrialClaims;
  /** Called when the worker may take more trials. */
  changed(): void;
}

/** Takes a queued trial into flight, if it can run here now. Does not wait for its end. */
export async function take(trial: StoredTrial, parts: TakeParts, signal: AbortSignal): Promise<void> {
  const { ledger, runners, revisions, checks, batches, waiting, flight, observe } = parts;
  using taken = new DisposableStack();
  const { revision, use } = revisions.use();
  taken.use(use);
  const context = batches.take(trial.batch);
  taken.defer(() => batches.release(trial.batch));
  const check = async (spec: TrialSpec) => {
    if (checks) await parts.check.look(spec, revision, signal);
  };
  const specified = await specify(trial, { ledger, batches, harnesses: runners, revision }, check);
  signal.throwIfAborted();
  if (specified.kind !== 'ready') {
    // The trial may be ready under the current configuration.
    if (revision !== revisions.current) return;
    const again = specified.kind === 'waiting' && specified.again;
    const { kind, reason } = specified;
    const run = { kind, run: trial.runId, case: trial.caseId, reason };
    const isNews = waiting.add(trial.run, run, again ? retryMs : undefined);
    observe({ kind: 'not-ready', trial, why: specified, isNews });
    return;
  }
  const { spec } = specified;
  if (!flight.hasRoomFor(trial, spec)) return;
  const one: WorkedTrial = {
    trial,
    spec,
    at: undefined,
    canceling: new AbortController(),
    state: 'looking',
    running: undefined,
    triedAhead: false,
    lease: undefined,
    ended: Promise.resolve(),
  };
  flight.add(one);
  const kept = taken.move();
  one.ended = run(one, context, revision, parts).finally(() => {
    kept.dispose();
    flight.remove(trial.key);
    parts.changed();
  });
}

/** Runs a trial in flight to its end. Never rejects. */
async function run(
  one: WorkedTrial,
  context: BatchContext,
  revision: ConfigRevision,
  parts: TakeParts,
): Promise<void> {
  const { gate, engines } = parts;
  const { spec, canceling } = one;
  const signal = AbortSignal.any([gate.stopped, canceling.signal]);
  const admitted = AbortSignal.any([signal, gate.admitted]);
  try {
    using seat = await engines.seat(spec, admitted);
    for (let isEnded = false; !isEnded; ) {
      one.at = { pooled: seat.pooled, context: context.on(seat.pooled.engine) };
      isEnded = await runAt(seat, one, one.at.context, { signal, admitted }, revision, parts);
    }
  } catch (error) {
    if (error instanceof NotClaimed) leave(one, error, parts);
    else putBack(one, admitted.aborted ? undefined : { error }, parts);
  }
}

/**
 * Runs a trial at the engine of its seat. Resolves with false if its seat has moved to another engine.
 * Rejects as `finishTrial` does.
 */
async function runAt(
  seat: Seat,
  one: WorkedTrial,
  { sandboxes, builds }: EngineContext,
  signals: AttemptSignals,
  revision: ConfigRevision,
  parts: TakeParts,
): Promise<boolean> {
  const { trialClaims, batches, check, ledger } = parts;
  const { trial, spec } = one;
  const { gateway, config } = revision;
  const batch = batches.budgetOf(trial.batch, config.budgets.batch);
  const { budget } = config.workspaces;
  const attemptParts = {
    ...parts,
    gateway,
    sandboxes,
    budgets: { ...config.budgets, batch },
    seat,
    cassette: (replay: PlannedReplay) => plannedCassette(ledger, replay),
    blobs: ledger.blobs,
    keep: budget > 0 ? { store: ledger.workspaces, budget } : undefined,
    claim: (signal: AbortSignal) => trialClaims.claim(one, signal),
  };
  const observe = (event: AttemptEvent) => {
    if (event.kind === 'phase' && one.running) one.running.phase = event.phase;
    if (event.kind === 'retried') {
      // The attempt may have failed because its image no longer exists.
      check.forget();
      one.state = 'ready';
      one.running = undefined;
    }
    parts.observe({ ...event, trial });
  };
  const begun = () => {
    one.state = 'running';
    one.running = { phase: 'sandbox', at: parts.clock.monotonic() };
    parts.observe({ kind: 'begun', trial });
    void trialClaims.claimNext();
  };
  try {
    await builds.ready(trial.runId, spec, signals.admitted);
    if (one.state === 'building') parts.changed();
    one.state = 'ready';
    await finishTrial(spec, trial.key, attemptParts, signals, observe, begun);
    return true;
  } catch (error) {
    if (error instanceof Moved) return false;
    throw error;
  } finally {
    // A trial that moves or was put back gets another sandbox, or another spec, which does not find this
    // sandbox.
    trialClaims.giveBack(one);
  }
}

interface UnfinishedParts extends Pick<WorkerParts, 'ledger' | 'observe' | 'scope'> {
  gate: Gate;
  flight: Flight;
  engines: Engines;
  waiting: WaitingRuns;
  elsewhere: TrialsElsewhere;
}

/** Leaves a trial to another agent, or to a later try. */
function leave(one: WorkedTrial, error: NotClaimed, parts: UnfinishedParts): void {
  const { ledger, observe, gate, waiting, elsewhere } = parts;
  const { trial, running } = one;
  const { message: reason, why } = error;
  let isNews = true;
  try {
    switch (why.kind) {
      case 'ended':
        ledger.queue.withdraw([trial.key], 'elsewhere');
        break;
      case 'held':
        elsewhere.add(trial, why.waitMs);
        break;
      case 'unasked': {
        const { run, runId, caseId } = trial;
        const waiter = { kind: 'waiting', run: runId, case: caseId, reason } as const;
        isNews = waiting.add(run, waiter, why.waitMs ?? retryMs);
      }
    }
  } catch (failure) {
    gate.block(one, failure);
    return;
  }
  const hadBegun = running !== undefined;
  observe({ kind: 'not-claimed', trial, why: why.kind, reason, hadBegun, isNews });
}

/**
 * Queues a trial again. After a failure the worker starts no other trial for now: usually the disk is full,
 * so that other trials would fail as well. Trials of a model that is down for too long are not started again,
 * and none at all if the engine is down.
 */
function putBack(one: WorkedTrial, failure: { error: unknown } | undefined, parts: UnfinishedParts): void {
  const { ledger, observe, scope, gate, flight, engines } = parts;
  if (one.running) observe({ kind: 'left', trial: one.trial });
  if (failure && isOutage(failure.error)) {
    // Other engines may still run other trials of the model.
    const isEngine = one.at?.pooled.isDown === true && !engines.isModelOpen(one.spec.model);
    if (isEngine && !engines.areAllDown) flight.giveUpRun(one.trial.run, failure.error);
    else flight.giveUp(one.spec.model, failure.error);
    if (engines.areAllDown) gate.hold();
    return;
  }
  try {
    // If the result could not be stored, its attempt is still open.
    ledger.queue.putBack(scope, one.trial.key);
  } catch (error) {
    gate.block(one, failure?.error ?? error);
    return;
  }
  if (failure) gate.block(one, failure.error);
}

function isOutage(error: unknown): boolean {
  return error instanceof OffsiteError && error.code === 'CIRCUIT_OPEN';
}
