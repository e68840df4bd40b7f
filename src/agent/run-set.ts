import { resolve } from 'node:path';
import { OffsiteError } from '../base/offsite-error.ts';
import { serviceRequests } from '../bounds/callers.ts';
import { limits } from '../contract/definition.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import { fleetLock } from '../ledger/fleet-tasks.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { embeddedService } from '../ledger/platform.ts';
import { daemonLock } from '../ledger/queue.ts';
import { lockOfSet, newSetId, type SetPart, type StoredSet } from '../ledger/sets.ts';
import type { OpenStart } from '../ledger/starts.ts';
import type { SuitePlan } from '../suite/plan.ts';
import { plural } from '../text/quantities.ts';
import { notResumable, type OpenBatch, openBatch, readPlan, storedPlan } from './batch-run.ts';
import { checkOnEngines } from './engines/check.ts';
import { type BatchEvent, type BatchParts, runBatch, runPlanned, workOffBatch } from './run-batch.ts';
import { lostBatch, withPrompt } from './start-batch.ts';

/** What can be continued. */
export type Resumable =
  | { kind: 'batch'; batch: StoredBatch }
  /** `evals.start` was called, and the process died before it knew the answer. */
  | { kind: 'start'; start: OpenStart }
  /** Batches of which some may not be started. */
  | { kind: 'set'; set: StoredSet };

/**
 * Everything that can be resumed at a service: starts, then batches, then sets with their own starts and
 * batches, each kind oldest first. Other processes may work on some of them; {@link resumeAny} finds out. A
 * fleet continues its batches itself.
 */
export function resumable(ledger: Ledger, service: string): Resumable[] {
  const { sets } = ledger;
  const isOwn = (one: StoredBatch | OpenStart) => one.service === service && one.lock !== fleetLock;
  const starts = ledger.starts.open().filter((start) => isOwn(start) && !sets.ofStart(start.key));
  const batches = ledger.batches.open().filter((batch) => isOwn(batch) && !sets.ofBatch(batch.key));
  const open = sets.open().filter((set) => set.service === service);
  return [
    ...starts.map((start) => ({ kind: 'start' as const, start })),
    ...batches.map((batch) => ({ kind: 'batch' as const, batch })),
    ...open.map((set) => ({ kind: 'set' as const, set })),
  ];
}

/**
 * The plan of a batch, or of all parts of a set together. Undefined for a batch that was started without one,
 * for which {@link resumeAny} throws `NOT_RESUMABLE`.
 */
export function planOfAny(what: Resumable, ledger: Ledger): SuitePlan | undefined {
  const stored =
    what.kind === 'set' ? ledger.sets.parts(what.set.key) : [what.kind === 'batch' ? what.batch : what.start];
  const plans = stored.flatMap(({ plan }) => (plan ? readPlan(ledger.blobs.readJson(plan)) : []));
  const [first] = plans;
  return first && { ...first, cases: plans.flatMap(({ cases }) => cases) };
}

/** What became of a batch or of a set. */
interface Worked {
  /** The finished batches, in the order of the parts. */
  batches: OpenBatch[];
  /** The parts of a set that are left. */
  left: LeftPart[];
}

interface LeftPart {
  /** From 1. */
  number: number;
  /**
   * `unknown`: the service may have started it, and lists no batch that fits. `busy`: another process works
   * on it.
   */
  why: 'unknown' | 'busy';
}

/**
 * Runs a suite in as many batches as its cases need, one after another. The ledger knows all of them before
 * the first is started, so {@link resumeAny} can continue with those that are left. Rejects as
 * {@link runBatch} does.
 */
export async function runSet(
  plan: SuitePlan,
  parts: BatchParts,
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
): Promise<{ batches: OpenBatch[]; set?: string }> {
  const { ledger, service } = parts;
  if (planParts(plan, parts.batchCases).length === 1)
    return { batches: [await runBatch(plan, parts, signal, observe)] };
  await checkOnEngines(parts, plan, signal, (build) => observe({ kind: 'build', build }));
  const plans = planParts(await withPrompt(plan, parts.client, signal), parts.batchCases);
  const stored: string[] = [];
  for (const part of plans) stored.push(await ledger.blobs.putJson(storedPlan(part)));
  const id = newSetId();
  const lock = ledger.takeLock(lockOfSet(id));
  if (!lock) throw new Error(`another process holds the new lock of ${id}`);
  using _lock = lock;
  // A later command may run in another folder.
  const file = resolve(plan.file);
  const set = ledger.sets.add({ id, service, suite: plan.suite.name, file, plans: stored });
  const { batches, left } = await workOffSet(set, { startsUnknown: false }, parts, signal, observe);
  if (left.length > 0) throw new Error(`parts of the new ${id} were left`);
  lock.remove();
  return { batches, set: id };
}

/** How to resume a set. */
interface SetResuming {
  /** Whether to start parts that the service may have started already, and does not list. */
  startsUnknown: boolean;
}

/** Why a batch was not continued: another process works on it, or the service did not start it. */
type NotResumed = 'busy' | 'never-started';

/**
 * Continues a batch or a set, whatever stopped it. Trials with a result do not run again, interrupted trials
 * start again with a new attempt, and reports are delivered. Of a set, those batches come first that were
 * started, then the parts that never were. A part is started again only if it is certain that the service has
 * no batch of it. Throws `NOT_RESUMABLE` for a batch that an older Offsite started, and as {@link runBatch}
 * does.
 */
export async function resumeAny(
  what: Resumable,
  how: SetResuming,
  parts: BatchParts,
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
): Promise<({ kind: 'finished' } & Worked) | { kind: NotResumed }> {
  if (what.kind !== 'set') {
    const begun = what.kind === 'batch' ? what.batch : what.start;
    const batch = await resume(begun, parts, signal, observe);
    return typeof batch === 'string' ? { kind: batch } : { kind: 'finished', batches: [batch], left: [] };
  }
  const lock = parts.ledger.takeLock(lockOfSet(what.set.id));
  if (!lock) return { kind: 'busy' };
  using _lock = lock;
  const plan = planOfAny(what, parts.ledger);
  if (!plan) throw new Error(`the set ${what.set.id} has no parts`);
  await checkOnEngines(parts, plan, signal, (build) => observe({ kind: 'build', build }));
  const worked = await workOffSet(what.set, how, parts, signal, observe);
  if (worked.left.length === 0) lock.remove();
  return { kind: 'finished', ...worked };
}

/** Continues a batch, or looks for the batch of a start. */
async function resume(
  begun: StoredBatch | OpenStart,
  parts: BatchParts,
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
): Promise<OpenBatch | NotResumed> {
  const { ledger, service } = parts;
  if (begun.lock === undefined) throw notResumable('id' in begun ? `batch ${begun.id}` : 'the start');
  const lock = ledger.takeLock(begun.lock);
  if (!lock) return 'busy';
  using _lock = lock;
  const batch = 'id' in begun ? openBatch(begun, ledger) : await lostBatch(begun, parts, signal);
  if (batch) {
    await checkOnEngines(parts, batch.plan, signal, (build) => observe({ kind: 'build', build }));
    const scope = { service, lock: lock.name, batch: batch.key, origin: 'planned' } as const;
    const interrupted = ledger.queue.interrupt(scope);
    if (interrupted > 0) observe({ kind: 'note', message: againText(interrupted) });
    await workOffBatch(batch, lock.name, parts, signal, observe, { isResumed: true });
  }
  // A later daemon takes the daemon's lock again. The lock of a batch is never taken again.
  if (lock.name !== daemonLock) lock.remove();
  return batch ?? 'never-started';
}

function againText(interrupted: number): string {
  return `${plural(interrupted, 'trial')} that ran when the batch was stopped ${interrupted === 1 ? 'starts' : 'start'} again`;
}

async function workOffSet(
  set: StoredSet,
  how: SetResuming,
  parts: BatchParts,
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
): Promise<Worked> {
  const worked: Worked = { batches: [], left: [] };
  for (const part of parts.ledger.sets.parts(set.key)) {
    const { number } = part;
    if (part.batch?.state !== 'finished')
      observe({ kind: 'note', message: `batch ${number} of ${set.parts} of ${set.id}` });
    const batch = await workOffPart(part, how, parts, signal, observe);
    if (typeof batch === 'string') worked.left.push({ number, why: batch });
    else worked.batches.push(batch);
  }
  return worked;
}

async function workOffPart(
  { key, plan, start, batch }: SetPart,
  { startsUnknown }: SetResuming,
  parts: BatchParts,
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
): Promise<OpenBatch | LeftPart['why']> {
  const { ledger } = parts;
  if (batch?.state === 'finished') return openBatch(batch, ledger);
  if (start && start.state !== 'refused') {
    const begun = batch ?? ledger.starts.byKey(start.key);
    const resumed = await resume(begun, parts, signal, observe).catch((error) => {
      if (!(error instanceof OffsiteError) || error.code !== 'START_AMBIGUOUS') throw error;
      observe({ kind: 'note', message: error.message });
      return 'never-started' as const;
    });
    if (resumed !== 'never-started') return resumed;
    // The embedded service ended with the process that asked it, so it can no longer start the part.
    if (!startsUnknown && parts.service !== embeddedService) return 'unknown';
    ledger.starts.refused(start.key, 'the service lists no such batch: it is started again');
  }
  return runPlanned(readPlan(ledger.blobs.readJson(plan)), parts, signal, observe, key);
}

/**
 * A plan as plans that each fit into one start request, in the order of its cases. A case that alone is
 * larger is a part of its own, which the service then refuses.
 *
 * @param most cases of a part
 */
export function planParts(plan: SuitePlan, most: number = limits.cases): SuitePlan[] {
  const parts: SuitePlan['cases'][] = [[]];
  let bytes = 0;
  for (const one of plan.cases) {
    const size = Buffer.byteLength(JSON.stringify(one.request));
    let part = parts.at(-1) ?? [];
    if (part.length === most || (part.length > 0 && bytes + size > largestPart)) {
      part = [];
      parts.push(part);
      bytes = 0;
    }
    part.push(one);
    bytes += size;
  }
  return parts.map((cases) => ({ ...plan, cases }));
}

/** The prompt, the variants and the defaults of cases take up the rest. */
const largestPart = serviceRequests.bytes.body / 2;
