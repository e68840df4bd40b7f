import type { Clock } from '../../base/clock.ts';
import type { Runner } from '../../harness/runner.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { QueueScope } from '../../ledger/queue.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';
import type { PhaseName } from '../../record/cause.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import type { BuildEvent } from '../../trial/prepare/obtain-image.ts';
import type { CircuitEvent } from '../circuits.ts';
import type { Claims, NotClaimed } from '../claims.ts';
import type { ConfigRevisions } from '../config-revision.ts';
import type { SomeEngines } from '../engines/check.ts';
import type { NotReady } from '../specify.ts';

/** Attempts of a trial that fails through no fault of the agent's. */
export const usualAttempts = 3;

export interface WorkerParts extends SomeEngines {
  runners: readonly Runner[];
  ledger: Ledger;
  clock: Clock;
  /** From 0 (inclusive) to 1 (exclusive). */
  random: () => number;
  /** The host's, for install and prepare. */
  extraCertificates: Buffer | undefined;
  /** The part of the queue that this worker runs. The caller holds its lock. */
  scope: QueueScope;
  revisions: ConfigRevisions;
  /** Claims trials before they run. If not given, no other agent can run them. */
  claims?: Claims | undefined;
  /** Attempts of a trial that fails through no fault of the agent's. */
  attempts: number;
  /** Milliseconds that trials wait for an engine or a model that is down. */
  patienceMs: number;
  /**
   * Whether to check each trial against engine and configuration first. Needed if its plan was not checked.
   */
  checks: boolean;
  /**
   * What the worker does when it cannot finish a trial: `pause` queues it again and starts no trial for some
   * seconds, `stop` queues it again and starts no more trials.
   */
  onFailure: 'pause' | 'stop';
  observe(event: WorkEvent): void;
  /** Called when the worker may take more trials. */
  changed?: (() => void) | undefined;
}

export type AttemptEvent =
  | { kind: 'phase'; phase: PhaseName }
  | { kind: 'retried'; attempt: number; message: string }
  /** The trial is finished, but its result cannot be stored yet. */
  | { kind: 'unstored'; message: string }
  /** Its harness did not work. `position` counts such trials of its variant, from 1. */
  | { kind: 'broken-harness'; position: number; message: string }
  | { kind: 'finished'; result: TrialRecord };

export type WorkEvent =
  | { kind: 'begun'; trial: StoredTrial }
  | (AttemptEvent & { trial: StoredTrial })
  /** `isNews` unless an event with the same reason came before. */
  | { kind: 'not-ready'; trial: StoredTrial; why: NotReady; isNews: boolean }
  /** The trial could not be finished and is queued again. */
  | { kind: 'put-back'; trial: StoredTrial; error: unknown; isNews: boolean }
  /**
   * The trial must not run now: another agent has it (`held`) or has ended it (`ended`), or the service
   * cannot be asked (`unasked`). `hadBegun` if an attempt of it was running.
   */
  | {
      kind: 'not-claimed';
      trial: StoredTrial;
      why: NotClaimed['why']['kind'];
      reason: string;
      hadBegun: boolean;
      isNews: boolean;
    }
  /** The trial ran, and ended without a result: its run was canceled, or the worker stops. */
  | { kind: 'left'; trial: StoredTrial }
  | { kind: 'build'; build: BuildEvent }
  | CircuitEvent;
