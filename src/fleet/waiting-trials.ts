import { z } from 'zod';
import { fleetMessages } from '../bounds/fleet.ts';
import { fleetFormat } from './format.ts';
import { Needs, queueFor } from './placement/needs.ts';
import { unmet } from './placement/unmet.ts';
import { isThere, type SeenWorker } from './seen-workers.ts';
import type { FleetStorage } from './storage/storage.ts';
import type { BatchProgress } from './workflow/messages.ts';
import type { WaitingTrials } from './workflow/poll-messages.ts';

const Memo = z.object({
  pool: z.string().default('default'),
  format: z.string().default(fleetFormat),
  trials: z.number().default(0),
  needs: z.array(Needs).max(fleetMessages.count.needs).default([]),
});

/** What is known of a fleet's workers. */
export interface Known {
  seen: readonly SeenWorker[];
  /** The fleet's. */
  taskQueue: string;
  /** Without one, workers cannot say what they offer. */
  storage: FleetStorage | undefined;
}

/**
 * The trials of a batch that no worker can run now, and why.
 *
 * @param memo of the batch's workflow
 * @param progress undefined if no worker answers for the workflow
 */
export function waitingTrials(
  memo: Record<string, unknown>,
  progress: BatchProgress | undefined,
  { seen, taskQueue, storage }: Known,
): WaitingTrials[] {
  const { pool, format, needs, trials: planned } = Memo.safeParse(memo).data ?? Memo.parse({});
  const there = seen.filter(isThere);
  const own = there.flatMap(({ profile }) => (profile?.format === format ? [profile] : []));
  const all = { trials: progress ? progress.trials - progress.scheduled : planned };
  if (there.length === 0) return [{ reason: 'no worker is running', ...all }];
  if (!storage) return [];
  if (own.length === 0) {
    const others = new Set(there.map(({ profile }) => profile?.format ?? 'another'));
    const reason = `no worker has the fleet format ${format} of their batch, only ${[...others].join(', ')}`;
    return [{ reason, ...all }];
  }
  const waiting = new Map<string, number>();
  for (const { queue, trials } of progress?.queues ?? []) {
    const asked = needs.find((one) => queueFor(taskQueue, pool, one) === queue);
    const reason = asked && unmet(asked, pool, own);
    if (reason !== undefined) waiting.set(reason, (waiting.get(reason) ?? 0) + trials);
  }
  return [...waiting].map(([reason, trials]) => ({ reason, trials }));
}
