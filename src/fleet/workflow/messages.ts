/** What goes over Temporal: references, numbers and short texts. The workflow's code shares these types. */

import type { Holder } from '../../base/shares.ts';
import type {
  FoundTrialSettings,
  KnownTarget,
  LookOrder,
  PageOrder,
  Starting,
  TrialList,
  TrialOrder,
} from '../worker/orders.ts';

/** The name of the workflow that runs one batch. Its id is the batch's. */
export const batchWorkflow = 'offsiteBatch';

/** What all workflows of a batch need to know. */
export interface TrialsInput {
  batch: string;
  /** Batches of one group share what one batch would get. Without it, a batch is a group of its own. */
  group?: string | undefined;
  /** The hash of the batch's document in the storage. */
  document: string;
  taskQueue: string;
  pool: string;
  /** Milliseconds without a heartbeat until a trial goes to another worker. */
  heartbeatMs: number;
  /** From 1, the most urgent, to 5. */
  priority: number;
  /** What the trials may use together. */
  budget: Spending;
  /** What one trial may use, if that is limited. */
  trialBudget: Spending;
}

export interface BatchInput extends TrialsInput {
  /** How many trials it has. */
  trials: number;
  /** The most trials that are scheduled at a time. */
  window: number;
  /** The most trials of one workflow. A batch with more has a child workflow for each part of this size. */
  slice: number;
  /** The most trials that one workflow keeps scheduled. */
  lane: number;
}

/** The name of the workflow that runs a part of a batch's trials. */
export const sliceWorkflow = 'offsiteSlice';

export interface SliceInput extends TrialsInput, Share {
  /** From 0. */
  index: number;
  list: TrialList;
  isPaused: boolean;
  /** Whether more of the budget may come. */
  awaits: boolean;
}

/** A part of what a batch may use: how many trials may be scheduled at a time, and what they may spend. */
export interface Share {
  permits: number;
  budget: Spending;
}

/** Model usage. A number that is absent is unlimited, or not known. */
export interface Spending {
  tokens?: number | undefined;
  usd?: number | undefined;
}

/** What is unlimited stays so. */
export function sumOf(budget: Spending, other: Spending, sign: 1 | -1): Spending {
  const { tokens, usd } = budget;
  return {
    ...(tokens !== undefined && { tokens: tokens + sign * (other.tokens ?? 0) }),
    ...(usd !== undefined && { usd: usd + sign * (other.usd ?? 0) }),
  };
}

export interface BatchOutcome {
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
  /** Set if not all trials were scheduled because the batch's budget is spent. */
  outOfBudget: boolean;
  lostTrials: LostTrial[];
}

/** What several parts of a batch, or several batches, have done together. */
export function totalOf(parts: readonly BatchOutcome[]): BatchOutcome {
  const sum = (of: (part: BatchOutcome) => number) => parts.reduce((total, part) => total + of(part), 0);
  return {
    scheduled: sum((part) => part.scheduled),
    passed: sum((part) => part.passed),
    failed: sum((part) => part.failed),
    void: sum((part) => part.void),
    elsewhere: sum((part) => part.elsewhere),
    lost: sum((part) => part.lost),
    spent: { tokens: sum(({ spent }) => spent.tokens), usd: sum(({ spent }) => spent.usd) },
    outOfBudget: parts.some(({ outOfBudget }) => outOfBudget),
    lostTrials: parts.flatMap(({ lostTrials }) => lostTrials),
  };
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
  /** The workflows of a batch in slices. Open ones answer with their own results and numbers. */
  slices?: { id: string; isOpen: boolean }[];
  /** Results after the position that was asked for, in the order of their arrival. */
  results: { position: number; trial: string; summary: TrialSummary }[];
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

export const signals = { pause: 'pause', unpause: 'unpause', free: 'free', take: 'take' } as const;
export const updates = { renew: 'renew' } as const;
export const queries = { progress: 'progress', outcome: 'outcome' } as const;

/** What the poll for queued runs and its workers send each other. */

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
