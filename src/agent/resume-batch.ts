import type { StoredBatch } from '../ledger/batches.ts';
import { fleetLock } from '../ledger/fleet-tasks.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Lock } from '../ledger/lock.ts';
import { daemonLock } from '../ledger/queue.ts';
import type { StoredSet } from '../ledger/sets.ts';
import type { OpenStart } from '../ledger/starts.ts';
import type { SuitePlan } from '../suite/plan.ts';
import { plural } from '../text/quantities.ts';
import { notResumable, type OpenBatch, openBatch, readPlan } from './batch-run.ts';
import { checkOnEngines } from './engines/check.ts';
import { type BatchEvent, type BatchParts, workOffBatch } from './run-batch.ts';
import { lostBatch } from './start-batch.ts';

/** A batch that was started and is not finished. */
export type ResumableBatch =
  | { kind: 'batch'; batch: StoredBatch }
  /** `evals.start` was called, and the process died before it knew the answer. */
  | { kind: 'start'; start: OpenStart };

/** A batch, or a set of batches of which some may not be started. */
export type Resumable = ResumableBatch | { kind: 'set'; set: StoredSet };

/**
 * Everything that can be resumed at a service: starts, then batches, then sets with their own starts and
 * batches, each kind oldest first. Other processes may work on some of them; {@link resume} finds out. A
 * fleet continues its batches itself.
 */
export function resumable(ledger: Ledger, service: string): Resumable[] {
  const { sets } = ledger;
  const starts = ledger.starts.open().filter(({ key }) => !sets.ofStart(key));
  const batches = ledger.batches.open().filter(({ key }) => !sets.ofBatch(key));
  const single: ResumableBatch[] = [
    ...starts.map((start) => ({ kind: 'start' as const, start })),
    ...batches.map((batch) => ({ kind: 'batch' as const, batch })),
  ];
  const own = single.filter((one) => {
    const what = one.kind === 'batch' ? one.batch : one.start;
    return what.service === service && what.lock !== fleetLock;
  });
  const open = sets.open().filter((set) => set.service === service);
  return [...own, ...open.map((set) => ({ kind: 'set' as const, set }))];
}

/** The plan of a batch; undefined if the ledger has none, for which {@link resume} throws `NOT_RESUMABLE`. */
export function planOf(what: ResumableBatch, ledger: Ledger): SuitePlan | undefined {
  const stored = what.kind === 'batch' ? what.batch.plan : what.start.plan;
  return stored === undefined ? undefined : readPlan(ledger.blobs.readJson(stored));
}

export type Resumed =
  | { kind: 'finished'; batch: OpenBatch }
  /** Another process works on it. */
  | { kind: 'busy' }
  /** The service did not start the batch, so there is nothing to resume. */
  | { kind: 'never-started' };

/**
 * Continues a batch, whatever stopped it. Trials with a result do not run again, interrupted trials start
 * again with a new attempt, and reports are delivered. Throws `NOT_RESUMABLE` for a batch that an older
 * Offsite started, and as {@link workOffBatch} does.
 */
export async function resume(
  what: ResumableBatch,
  parts: BatchParts,
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
): Promise<Resumed> {
  const { ledger } = parts;
  const name = what.kind === 'batch' ? what.batch.lock : what.start.lock;
  if (name === undefined) throw notResumable(what.kind === 'batch' ? `batch ${what.batch.id}` : 'the start');
  const lock = ledger.takeLock(name);
  if (!lock) return { kind: 'busy' };
  using _lock: Lock = lock;
  // A later daemon takes the daemon's lock again. The lock of a batch is never taken again.
  const endLock = () => (name === daemonLock ? lock[Symbol.dispose]() : lock.remove());
  const batch =
    what.kind === 'batch' ? openBatch(what.batch, ledger) : await lostBatch(what.start, parts, signal);
  if (!batch) {
    endLock();
    return { kind: 'never-started' };
  }
  await checkOnEngines(parts, batch.plan, signal, (build) => observe({ kind: 'build', build }));
  const scope = { service: parts.service, lock: name, batch: batch.key, origin: 'planned' } as const;
  const interrupted = ledger.queue.interrupt(scope);
  if (interrupted > 0) observe({ kind: 'note', message: againText(interrupted) });
  const finished = await workOffBatch(batch, name, parts, signal, observe, { isResumed: true });
  endLock();
  return { kind: 'finished', batch: finished };
}

function againText(interrupted: number): string {
  return `${plural(interrupted, 'trial')} that ran when the batch was stopped ${interrupted === 1 ? 'starts' : 'start'} again`;
}
