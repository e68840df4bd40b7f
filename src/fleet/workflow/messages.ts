/** What goes over Temporal: references, numbers and short texts. The workflow's code shares these types. */

import type { LookAnswer, LookOrder } from './poll-messages.ts';
import type { Holder } from './shares.ts';

/** The name of the workflow that runs one batch. Its id is the batch's. */
export const batchWorkflow = 'offsiteBatch';

export interface BatchInput {
  batch: string;
  /** The hash of the batch's document in the storage. */
  document: string;
  /** How many trials it has. */
  trials: number;
  taskQueue: string;
  pool: string;
  /** Milliseconds without a heartbeat until a trial goes to another worker. */
  heartbeatMs: number;
  /** The most trials that are scheduled at a time. */
  window: number;
  /** After how many trials the workflow continues as new. */
  continueAfter: number;
  /** From 1, the most urgent, to 5. */
  priority: number;
  budget: Spending;
  /** What one trial may use, if that is limited. */
  trialBudget: Spending;
  /** What earlier runs of this workflow have done. */
  done?: BatchDone;
}

/** Model usage. A number that is absent is unlimited, or not known. */
export interface Spending {
  tokens?: number | undefined;
  usd?: number | undefined;
}

export interface BatchDone {
  /** Trials that were scheduled. */
  scheduled: number;
  passed: number;
  failed: number;
  void: number;
  /** Trials that another agent outside the fleet has run. */
  elsewhere: number;
  /** Trials that no worker could run. */
  lost: number;
  spent: { tokens: number; usd: number };
}

export interface BatchOutcome extends BatchDone {
  /** Set if not all trials were scheduled because the batch's budget is spent. */
  outOfBudget: boolean;
  lostTrials: LostTrial[];
}

export interface LostTrial {
  trial: string;
  reason: string;
}

/** The answer to the query `progress`. */
export interface BatchProgress extends BatchOutcome {
  trials: number;
  isPaused: boolean;
  /** How many trials of each task queue are scheduled or held. */
  queues: { queue: string; trials: number }[];
  /** Results after the position that was asked for, in the order of their arrival. */
  results: { position: number; trial: string; summary: TrialSummary }[];
}

/** What an activity gets. */
export interface TrialOrder {
  batch: string;
  document: string;
  run: string;
  ordinal: number;
}

/** What an activity returns. */
export interface TrialSummary {
  verdict: 'passed' | 'failed' | 'void' | 'elsewhere';
  /** The kind of the cause, for a trial without a verdict. */
  cause?: string | undefined;
  ms: number;
  tokens?: number | undefined;
  usd?: number | undefined;
  /** The hash of the record. */
  record?: string | undefined;
  worker: string;
}

export interface PageOrder {
  document: string;
  from: number;
  limit: number;
  taskQueue: string;
  pool: string;
}

/** A trial with the task queue of the workers that have what it needs. */
export interface PlacedTrial {
  run: string;
  ordinal: number;
  queue: string;
}

/** The name of the workflow that holds the permits of one model. */
export const limitWorkflow = 'offsiteModelLimit';

export interface LimitInput {
  /** Milliseconds after which a holder that is silent has lost its permits. */
  termMs: number;
  holders?: [string, Holder][];
}

/** The activities, by their names in Temporal. */
export interface FleetActivities {
  offsiteTrial(order: TrialOrder): Promise<TrialSummary>;
  offsiteTrialPage(order: PageOrder): Promise<PlacedTrial[]>;
  offsiteLook(order: LookOrder): Promise<LookAnswer>;
}

/** The name of an activity: `run/ordinal`. */
export function trialName({ run, ordinal }: { run: string; ordinal: number }): string {
  return `${run}/${ordinal}`;
}

export const signals = { pause: 'pause', unpause: 'unpause' } as const;
export const updates = { renew: 'renew' } as const;
export const queries = { progress: 'progress', outcome: 'outcome' } as const;
