import type { PhaseName } from '../../trial/result.ts';
import type { WaitingRun } from '../waiting-runs.ts';

/**
 * `paused` starts no trial, `draining` ends when the running trials have ended, `canceling` puts them back
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
  run: string;
  case: string;
  ordinal: number;
  phase: PhaseName;
  /** Milliseconds since it began. */
  forMs: number;
}

export interface DaemonStatus {
  pid: number;
  mode: Mode;
  /** Why no trial is begun although there are some: a full disk. */
  blocked: string | undefined;
  /** Milliseconds since it started. */
  upMs: number;
  service: string;
  engine: string;
  dataFolder: string;
  concurrency: number;
  /** Trials that wait to be run, those of waiting and parked runs included. */
  queued: number;
  running: RunningTrial[];
  waiting: WaitingRun[];
  parked: WaitingRun[];
  /** Since the start. */
  finished: { passed: number; failed: number; void: number };
  /** Results that the service has not taken; the oldest one's age in milliseconds. */
  outbox: { queued: number; parked: number; oldestMs: number | undefined };
  /** Where looking for runs fails, and why. */
  polls: { place: string; trouble: string }[];
  health: Health;
  residentBytes: number;
}
