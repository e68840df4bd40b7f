import { OffsiteError } from '../../offsite-error.ts';
import type { Engines } from '../engines/engines.ts';
import type { NotClaimed } from '../not-claimed.ts';
import type { Flight, WorkedTrial } from './flight.ts';
import type { Gate } from './gate.ts';
import type { TrialsElsewhere } from './trials-elsewhere.ts';
import type { WaitingRuns } from './waiting-runs.ts';
import type { WorkerParts } from './worker-parts.ts';

export interface UnfinishedParts extends Pick<WorkerParts, 'ledger' | 'observe' | 'scope'> {
  gate: Gate;
  flight: Flight<WorkedTrial>;
  engines: Engines;
  waiting: WaitingRuns;
  elsewhere: TrialsElsewhere;
}

/** Leaves a trial to another agent, or to a later try. */
export function leave(one: WorkedTrial, error: NotClaimed, parts: UnfinishedParts): void {
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
        isNews = waiting.add(run, { kind: 'waiting', run: runId, case: caseId, reason }, { again: true });
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
export function putBack(
  one: WorkedTrial,
  failure: { error: unknown } | undefined,
  parts: UnfinishedParts,
): void {
  const { ledger, scope, gate, flight, engines } = parts;
  if (failure && isOutage(failure.error)) {
    // Other engines may still run other trials of the model.
    const isEngine = one.at?.pooled.circuits.isEngineOpen === true && !engines.isModelOpen(one.spec.model);
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
