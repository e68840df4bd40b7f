import { z } from 'zod';
import { fleetMessages, fleetStorage } from '../../bounds/fleet.ts';
import { Sha256 } from '../storage/storage.ts';

/** What the activities of a worker get, checked, because anyone who may start workflows may send anything. */

const Name = z.string().max(fleetStorage.bytes.name);

const Holder = z
  .string()
  .max(2 * fleetStorage.bytes.name)
  .optional();

export const TrialOrder = z.object({
  batch: Name,
  document: Sha256,
  holder: Holder,
  run: Name,
  ordinal: z.int().nonnegative(),
});

/** A forged batch with a shorter time would make the worker send heartbeats without a pause. */
export const shortestHeartbeatMs = 1_000;

export const PageOrder = z.object({
  document: Sha256,
  holder: Holder,
  list: z.object({ first: z.int().nonnegative(), step: z.int().positive(), count: z.int().nonnegative() }),
  taskQueue: Name,
  pool: Name,
});

const Epoch = z.number().nonnegative();

export const LookOrder = z.object({
  targets: z
    .array(
      z.object({
        target: z.object({ kind: z.enum(['case', 'suite']), id: Name, suite: Name.optional() }),
        known: z.boolean(),
      }),
    )
    .max(fleetMessages.count.targets),
  trials: z.object({
    ...{ taskQueue: Name, pool: Name, priority: z.int().min(1).max(5) },
    window: z.int().positive().max(fleetMessages.count.listed),
    heartbeatMs: z.number().min(shortestHeartbeatMs),
  }),
  starting: z.array(z.object({ token: Name, cases: z.array(Name), since: Epoch, until: Epoch })),
  before: Epoch,
});
