/** What the poll for queued runs and its workers send each other. */

import type { PollTarget } from '../../agent/daemon/poll-targets.ts';

/** The name of the workflow that polls. Its id is {@link pollId}. */
export const pollWorkflow = 'offsitePoll';

/** The name of the workflow of one trial of a run that was found. */
export const foundTrialWorkflow = 'offsiteFoundTrial';

/** A fleet has one poll, because Temporal runs one workflow of an id at a time. */
export function pollId(taskQueue: string): string {
  return `${taskQueue}/poll`;
}

export interface PollInput {
  /** The service's address. */
  service: string;
  suites: string[];
  cases: string[];
  /** Milliseconds between two polls of a target. */
  every: { min: number; max: number };
  trials: FoundTrialSettings;
  /** Epoch milliseconds. */
  since: number;
  /** What earlier runs of this workflow know. */
  before?: { targets: KnownTarget[]; started: number; starting: Starting[] };
}

/** How trials that are found are run. */
export interface FoundTrialSettings {
  taskQueue: string;
  pool: string;
  /** The most trials that are started and have not ended. */
  window: number;
  heartbeatMs: number;
  /** From 1, the most urgent, to 5. */
  priority: number;
}

/** A poll target, and whether a poll has read all of it. */
export interface KnownTarget {
  target: PollTarget;
  known: boolean;
}

/** A batch that `fleet run` is starting: the service may list its runs before the fleet has its workflow. */
export interface Starting {
  /** Identifies the start. */
  token: string;
  /** The ids of its cases. */
  cases: string[];
  /** When the service was asked, and when the start counts as over: epoch milliseconds. */
  since: number;
  until: number;
}

/** What a look's activity gets. */
export interface LookOrder {
  targets: KnownTarget[];
  trials: FoundTrialSettings;
  starting: Starting[];
  /** Epoch milliseconds. Runs that the service started later may belong to a batch that is being started. */
  before: number;
}

/** What a look found, in the order of its targets. */
export interface LookAnswer {
  targets: TargetAnswer[];
  /** Trials that are started and have not ended. */
  open: number;
}

export type TargetAnswer =
  | { kind: 'looked'; started: number; waiting: WaitingTrials[]; cases?: string[] | undefined }
  | { kind: 'failed'; failure: string };

/** Trials that do not start, and why. */
export interface WaitingTrials {
  reason: string;
  trials: number;
}

/** The answer to the query `poll`. */
export interface PollState {
  service: string;
  suites: string[];
  cases: string[];
  pool: string;
  since: number;
  /** How many cases and suites are polled. */
  targets: number;
  /** Trials started since the poll began. */
  started: number;
  open: number;
  /** Epoch milliseconds. */
  lookedAt: number | undefined;
  waiting: WaitingTrials[];
  /** The targets whose last poll failed. */
  failures: { target: string; failure: string }[];
}

export const pollSignals = { stop: 'stop', starting: 'starting', started: 'started' } as const;
export const pollQuery = 'poll';
