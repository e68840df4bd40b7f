import type { QueuedRun } from '../../ledger/queue.ts';
import type { PhaseName } from '../../record/cause.ts';
import { plural } from '../../text/quantities.ts';
import type { OpenBuildState } from '../../trial/prepare/obtain-image.ts';
import type { EngineStatus } from '../engines/engines.ts';
import type { TrialElsewhere, WaitingRun } from '../worker/waiting-runs.ts';
import type { RefusedTicket } from './ticket.ts';

/**
 * `paused` starts no trial; `draining` ends when the running trials have ended; `canceling` queues them again
 * and ends.
 */
export type Mode = 'working' | 'paused' | 'draining' | 'canceling';

export interface Health {
  ok: boolean;
  /** What does not work, for people: `the engine: …`, `the loop poll is stuck`. */
  troubles: string[];
}

export interface RunningTrial {
  batch: string;
  suite: string;
  run: string;
  case: string;
  ordinal: number;
  phase: PhaseName;
  /** The name of its engine, if there are several. */
  engine?: string | undefined;
  /** Milliseconds since the trial got its permit. */
  forMs: number;
}

/** An install or a prepare. */
export interface RunningBuild {
  what: string;
  state: OpenBuildState;
  /** Milliseconds in this state. */
  forMs: number;
}

/** What a worker does, and what it waits for. */
export interface WorkStatus {
  running: RunningTrial[];
  building: RunningBuild[];
  waiting: WaitingRun[];
  parked: WaitingRun[];
  claimedElsewhere: TrialElsewhere[];
}

export interface DaemonStatus extends WorkStatus {
  pid: number;
  mode: Mode;
  /** While it drains: what it waits for, and until when. */
  waitsFor?: string;
  /** Why no trial starts although some are queued: a full disk. */
  blocked: string | undefined;
  /** Milliseconds since the daemon started. */
  upMs: number;
  service: string;
  /** The address of the engine, or the names and addresses of several. */
  engine: string;
  /** If there are several engines: each with its running trials and the trials that it may run. */
  engines?: EngineStatus[];
  dataFolder: string;
  concurrency: number;
  /** Queued trials, including those of waiting and parked runs. */
  queued: number;
  /** The first 100 runs that have queued trials, and how many: what can be canceled. */
  queuedRuns: QueuedRun[];
  /** Files of the queue folder that could not be started, until somebody removes them. */
  refused: RefusedTicket[];
  /** Files of the queue folder whose batches are not started yet: the service or the engine may be down. */
  unstarted: string[];
  /** Trials since the start. */
  finished: { passed: number; failed: number; void: number };
  /** Models with `maxParallel: auto`: the limit, the most it may become, and the requests now. */
  limits: { model: string; limit: number; most: number; inFlight: number }[];
  /**
   * Results that the service does not show: `sent` ones were not seen there yet, `parked` ones were refused.
   * `oldestMs` is the age of the oldest one that was not refused.
   */
  outbox: { queued: number; sent: number; parked: number; oldestMs: number | undefined };
  /** How long ago results were compared with what the service has; undefined before the first time. */
  comparedMs: number | undefined;
  /** The poll targets whose last poll failed or that have no case at the service, and why. */
  polls: { place: string; trouble: string }[];
  health: Health;
  residentBytes: number;
}

/** What a daemon that drains waits for, and until when, for people. */
export function drainText(
  { running, queued, outbox, health }: Pick<DaemonStatus, 'running' | 'queued' | 'outbox' | 'health'>,
  graceMs: number,
): string {
  const trials = running.length;
  const results = outbox.queued + outbox.sent;
  const shown = trials === 0 ? plural(results, 'result') : results === 0 ? 'their results' : 'all results';
  const why = health.ok ? '' : ` (${health.troubles.join('; ')})`;
  const waits = [
    ...(trials > 0 ? [`for ${plural(trials, 'trial')} to end, each within its own time limits`] : []),
    ...(trials + results > 0
      ? [`for the service to show ${shown}, about ${graceMs / 1_000} s at most${why}`]
      : []),
  ];
  const left = [
    ...(queued > 0 ? [plural(queued, 'queued trial')] : []),
    ...(trials + results > 0 ? ['what the service does not show'] : []),
  ];
  const ends = `it ends${left.length > 0 ? `, and leaves ${left.join(' and ')} to the next start` : ''}`;
  return waits.length > 0
    ? `it waits ${waits.join(', then ')}; then ${ends}`
    : `nothing runs and no result waits: ${ends}`;
}

/** Whether the daemon starts trials. */
export function isReady({ mode, blocked }: DaemonStatus): boolean {
  return mode === 'working' && blocked === undefined;
}

/** Why a suite of the configuration brings no runs. It may also be started later. */
export const nothingListed =
  'the service lists no case of it: no batch of it was started there yet, or its id in daemon.suites is wrong';
