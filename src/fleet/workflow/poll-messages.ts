/** What the poll for queued runs and its workers send each other. */

import type { FoundTrialSettings, KnownTarget, Starting } from '../worker/orders.ts';

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
