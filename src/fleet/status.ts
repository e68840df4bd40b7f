import { z } from 'zod';
import type { Clock } from '../base/clock.ts';
import { infrastructureError, messageOf, OffsiteError } from '../base/offsite-error.ts';
import { fleetMessages } from '../bounds/fleet.ts';
import {
  BatchHandle,
  type HeldTrial,
  PollHandle,
  type PollStanding,
  runningWorkflows,
} from './batch-handle.ts';
import type { FleetConnection } from './connect.ts';
import { fleetFormat, workflowQueue } from './format.ts';
import { Needs, queueFor, unmet } from './placement.ts';
import { isThere, type SeenWorker, seenWorkers } from './seen-workers.ts';
import type { FleetStorage } from './storage/storage.ts';
import {
  type BatchOutcome,
  type BatchProgress,
  batchWorkflow,
  foundTrialWorkflow,
  type WaitingTrials,
} from './workflow/messages.ts';

export interface WorkerStatus extends SeenWorker {
  /** Whether it takes trials, as far as the server knows. */
  isThere: boolean;
  /** Trials that it holds. */
  holds: number;
}

export interface BatchStatus {
  id: string;
  suite: string;
  pool: string;
  /** Trials that workers hold. */
  held: number;
  /** These trials. */
  running: HeldTrial[];
  /** Trials that no worker can run now. */
  waiting: WaitingTrials[];
  /** Undefined if no worker answers. */
  progress: BatchProgress | undefined;
}

export interface FleetStatus {
  workers: WorkerStatus[];
  batches: BatchStatus[];
  poll: PollStanding;
  /** Trials of runs that the poll found. */
  found: { open: number; running: (HeldTrial & { batch: string })[] };
}

interface StatusParts {
  connection: FleetConnection;
  storage: FleetStorage;
  clock: Clock;
}

export async function fleetStatus({ connection, storage, clock }: StatusParts): Promise<FleetStatus> {
  const { client, fleet } = connection;
  const seen = await seenWorkers(connection, storage, clock);
  const ids: string[] = [];
  for await (const { workflowId } of runningWorkflows(client, batchWorkflow)) ids.push(workflowId);
  const known = { seen, taskQueue: fleet.taskQueue };
  const [batches, found, poll] = await Promise.all([
    Promise.all(ids.map((id) => statusOf(new BatchHandle(id, client), known))),
    foundTrials(connection),
    new PollHandle(connection).standing(),
  ]);
  const held = [...batches.flatMap(({ running }) => running), ...found.running];
  // Workers that announced their end and are silent are not shown.
  const present = seen.filter(({ isSilent, profile }) => !isSilent || !profile?.ended);
  const workers = present.map((one) => {
    return { ...one, isThere: isThere(one), holds: held.filter(({ worker }) => worker === one.name).length };
  });
  return { workers, batches, poll, found };
}

async function statusOf(handle: BatchHandle, known: Known): Promise<BatchStatus> {
  const { memo, open } = await handle.standing();
  const isAnswered = known.seen.some(isThere);
  const progress = isAnswered ? await handle.progress().catch(() => undefined) : undefined;
  const running = open.filter(({ phase }) => phase !== undefined);
  return {
    id: handle.id,
    suite: String(memo.suite ?? ''),
    pool: String(memo.pool ?? 'default'),
    held: running.length,
    running,
    waiting: waitingTrials(memo, progress, known),
    progress,
  };
}

/** How many trials are described to find out who holds them. */
const described = 100;

async function foundTrials({ client, fleet }: FleetConnection): Promise<FleetStatus['found']> {
  const handles: { handle: BatchHandle; batch: string }[] = [];
  const own = workflowQueue(fleet.taskQueue);
  let open = 0;
  for await (const { workflowId, memo } of runningWorkflows(client, foundTrialWorkflow, own)) {
    if (open++ < described)
      handles.push({ handle: new BatchHandle(workflowId, client), batch: String(memo?.batch ?? '') });
  }
  const running = handles.map(async ({ handle, batch }) => {
    const { open: trials } = await handle.standing();
    return trials.filter(({ phase }) => phase !== undefined).map((trial) => ({ ...trial, batch }));
  });
  return { open, running: (await Promise.all(running)).flat() };
}

const Memo = z.object({
  pool: z.string().default('default'),
  format: z.string().default(fleetFormat),
  trials: z.number().default(0),
  // Those of another format may have another form.
  needs: z.array(Needs).max(fleetMessages.count.needs).catch([]),
});

/** What is known of a fleet's workers. */
interface Known {
  seen: readonly SeenWorker[];
  /** The fleet's. */
  taskQueue: string;
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
  { seen, taskQueue }: Known,
): WaitingTrials[] {
  const { pool, format, needs, trials: planned } = Memo.safeParse(memo).data ?? Memo.parse({});
  const there = seen.filter(isThere);
  const own = there.flatMap(({ profile }) => (profile?.format === format ? [profile] : []));
  const all = { trials: progress ? progress.trials - progress.scheduled : planned };
  if (there.length === 0) return [{ reason: 'no worker is running', ...all }];
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

interface WatchParts {
  clock: Clock;
  workers(): Promise<SeenWorker[]>;
  /** The fleet's. */
  taskQueue: string;
  observe(event: WatchEvent): void;
}

export type WatchEvent =
  | { kind: 'progress'; progress: BatchProgress }
  /** The trials that workers hold now. */
  | { kind: 'held'; trials: HeldTrial[] }
  /** The trials that no worker can run. */
  | { kind: 'waiting'; waiting: WaitingTrials[] }
  | { kind: 'note'; message: string };

/** Milliseconds between two looks, and before another try when nobody answered. */
const lookMs = 1_000;
const againMs = 3_000;
/** Milliseconds between two looks for trials that no worker can run, in a fleet of at most 100 workers. */
const waitingMs = 3_000;

/**
 * Follows a batch until its workflow ends. Resolves with how it ended; undefined if it was canceled. Waits
 * while the server or the workers do not answer.
 */
export async function watchBatch(
  batch: BatchHandle,
  parts: WatchParts,
  signal: AbortSignal,
): Promise<BatchOutcome | undefined> {
  const { clock, observe } = parts;
  const lookForWaiting = waitingWatch(parts);
  const seen = new Map<string, number>();
  let lastReason: string | undefined;
  for (;;) {
    signal.throwIfAborted();
    try {
      const { status, open, memo } = await batch.standing();
      observe({ kind: 'held', trials: open });
      const hasScheduled = status === 'RUNNING' && open.some(({ phase }) => phase === undefined);
      const isStuck = status === 'RUNNING' && open.length === 0;
      // Only workers answer queries of the workflow, so without one, `progress` would fail.
      if (isStuck && (await lookForWaiting(memo))) {
        await clock.sleep(lookMs, signal);
        continue;
      }
      const more = await batch.progress(seen);
      if (hasScheduled) await lookForWaiting(memo, more);
      observe({ kind: 'progress', progress: more });
      lastReason = undefined;
      const isRead = more.results.length === 0;
      if (isRead && status !== 'RUNNING') return await endOf(batch, status);
      if (!isRead) continue;
    } catch (error) {
      if (error instanceof OffsiteError) throw error;
      const reason = messageOf(error);
      if (reason !== lastReason) observe({ kind: 'note', message: `the fleet does not answer: ${reason}` });
      lastReason = reason;
      await clock.sleep(againMs, signal);
    }
    await clock.sleep(lookMs, signal);
  }
}

/**
 * Looks from time to time which trials no worker can run. Resolves with whether there were any in the last
 * look. Without progress, only a fleet without workers for the batch is reported.
 */
function waitingWatch({ clock, workers, taskQueue, observe }: WatchParts) {
  let nextAt = 0;
  let isWaiting = false;
  return async (memo: Record<string, unknown>, progress?: BatchProgress): Promise<boolean> => {
    if (clock.now() < nextAt) return isWaiting;
    const seen = await workers();
    // A look reads the profile of each worker, so a large fleet is looked at less often.
    nextAt = clock.now() + waitingMs * Math.max(1, seen.length / 100);
    const waiting = waitingTrials(memo, progress, { seen, taskQueue });
    isWaiting = waiting.length > 0;
    observe({ kind: 'waiting', waiting });
    return isWaiting;
  };
}

async function endOf(batch: BatchHandle, status: string): Promise<BatchOutcome | undefined> {
  if (status === 'COMPLETED') return batch.outcome();
  if (status === 'CANCELLED' || status === 'TERMINATED') return undefined;
  throw infrastructureError('FLEET_BATCH_FAILED', `the workflow of batch ${batch.id} ended as ${status}`, {
    hint: "Temporal's UI shows its history.",
  });
}
