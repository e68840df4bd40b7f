import { z } from 'zod';
import { fleetMessages, fleetStorage } from '../../bounds/fleet.ts';
import { Sha256 } from '../storage/storage.ts';

/** What the activities of a worker get, checked, because anyone who may start workflows may send anything. */

const Name = z.string().max(fleetStorage.bytes.name);

/** The workflow whose query `plan` has the document, if no storage has it. */
const Holder = z
  .string()
  .max(2 * fleetStorage.bytes.name)
  .optional();

export const TrialOrder = z.object({
  batch: Name,
  /** The hash of the document. */
  document: Sha256,
  holder: Holder,
  run: Name,
  ordinal: z.int().nonnegative(),
});
export type TrialOrder = z.infer<typeof TrialOrder>;

/** A forged batch with a shorter time would make the worker send heartbeats without a pause. */
export const shortestHeartbeatMs = 1_000;

/** A part of the list of a batch's trials: every `step`th one from `first`, by position in the batch. */
const TrialList = z.object({
  first: z.int().nonnegative(),
  step: z.int().positive(),
  count: z.int().nonnegative(),
});
export type TrialList = z.infer<typeof TrialList>;

export const PageOrder = z.object({
  document: Sha256,
  holder: Holder,
  list: TrialList,
  taskQueue: Name,
  pool: Name,
});
export type PageOrder = z.infer<typeof PageOrder>;

const Epoch = z.number().nonnegative();

/** A poll target, and whether a poll has read all of it. */
const KnownTarget = z.object({
  target: z.object({ kind: z.enum(['case', 'suite']), id: Name, suite: Name.optional() }),
  known: z.boolean(),
});
export type KnownTarget = z.infer<typeof KnownTarget>;

/** How trials that are found are run. */
const FoundTrialSettings = z.object({
  taskQueue: Name,
  pool: Name,
  /** From 1, the most urgent, to 5. */
  priority: z.int().min(1).max(5),
  /** The most trials that are started and have not ended. */
  window: z.int().positive().max(fleetMessages.count.listed),
  heartbeatMs: z.number().min(shortestHeartbeatMs),
});
export type FoundTrialSettings = z.infer<typeof FoundTrialSettings>;

/** A batch that `fleet run` is starting: the service may list its runs before the fleet has its workflow. */
const Starting = z.object({
  /** Identifies the start. */
  token: Name,
  /** The ids of its cases. */
  cases: z.array(Name),
  /** When the service was asked, and when the start counts as over: epoch milliseconds. */
  since: Epoch,
  until: Epoch,
});
export type Starting = z.infer<typeof Starting>;

export const LookOrder = z.object({
  targets: z.array(KnownTarget).max(fleetMessages.count.targets),
  trials: FoundTrialSettings,
  starting: z.array(Starting),
  /** Epoch milliseconds. Runs that the service started later may belong to a batch that is being started. */
  before: Epoch,
});
export type LookOrder = z.infer<typeof LookOrder>;
