import { resolve } from 'node:path';
import { OffsiteError } from '../base/offsite-error.ts';
import { serviceRequests } from '../bounds/callers.ts';
import { limits } from '../contract/definition.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Lock } from '../ledger/lock.ts';
import { embeddedService } from '../ledger/platform.ts';
import { lockOfSet, newSetId, type SetPart, type StoredSet } from '../ledger/sets.ts';
import type { OpenStart } from '../ledger/starts.ts';
import type { SuitePlan } from '../suite/plan.ts';
import { type OpenBatch, openBatch, readPlan, storedPlan } from './batch-run.ts';
import { checkOnEngines } from './engines/check.ts';
import { planOf, type Resumable, type Resumed, resume } from './resume-batch.ts';
import { type BatchEvent, type BatchParts, runBatch, runPlanned } from './run-batch.ts';
import { withPrompt } from './start-batch.ts';

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
 * the first is started, so {@link resumeSet} can continue with those that are left. Rejects as
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

/** Continues a batch as {@link resume} does, or a set as {@link resumeSet} does. */
export async function resumeAny(
  what: Resumable,
  how: SetResuming,
  parts: BatchParts,
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
): Promise<({ kind: 'finished' } & Worked) | { kind: 'busy' | 'never-started' }> {
  if (what.kind === 'set') {
    const worked = await resumeSet(what.set, how, parts, signal, observe);
    return worked ? { kind: 'finished', ...worked } : { kind: 'busy' };
  }
  const resumed = await resume(what, parts, signal, observe);
  return resumed.kind === 'finished' ? { kind: 'finished', batches: [resumed.batch], left: [] } : resumed;
}

/**
 * The plan of a batch, or of all parts of a set together; undefined for a batch that was started without one.
 */
export function planOfAny(what: Resumable, ledger: Ledger): SuitePlan | undefined {
  return what.kind === 'set' ? planOfSet(what.set, ledger) : planOf(what, ledger);
}

/**
 * Continues a set, whatever stopped it: batches that were started, then the parts that never were. A part is
 * started again only if it is certain that the service has no batch of it. Returns undefined if another
 * process works on the set. Rejects as {@link runBatch} does.
 */
async function resumeSet(
  set: StoredSet,
  how: SetResuming,
  parts: BatchParts,
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
): Promise<Worked | undefined> {
  const { ledger } = parts;
  const lock: Lock | undefined = ledger.takeLock(lockOfSet(set.id));
  if (!lock) return undefined;
  using _lock = lock;
  const plan = planOfSet(set, ledger);
  await checkOnEngines(parts, plan, signal, (build) => observe({ kind: 'build', build }));
  const worked = await workOffSet(set, how, parts, signal, observe);
  if (worked.left.length === 0) lock.remove();
  return worked;
}

function planOfSet({ key, id }: StoredSet, ledger: Ledger): SuitePlan {
  const plans = ledger.sets.parts(key).map(({ plan }) => readPlan(ledger.blobs.readJson(plan)));
  const [first] = plans;
  if (!first) throw new Error(`the set ${id} has no parts`);
  return { ...first, cases: plans.flatMap(({ cases }) => cases) };
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
    const resumed = await resumePart(begun, parts, signal, observe);
    if (resumed.kind === 'finished') return resumed.batch;
    if (resumed.kind === 'busy') return 'busy';
    // The embedded service ended with the process that asked it, so it can no longer start the part.
    if (!startsUnknown && parts.service !== embeddedService) return 'unknown';
    ledger.starts.refused(start.key, 'the service lists no such batch: it is started again');
  }
  return runPlanned(readPlan(ledger.blobs.readJson(plan)), parts, signal, observe, key);
}

/** Continues a batch, or looks for the batch of a start. */
async function resumePart(
  begun: StoredBatch | OpenStart,
  parts: BatchParts,
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
): Promise<Resumed> {
  const what =
    'id' in begun ? ({ kind: 'batch', batch: begun } as const) : ({ kind: 'start', start: begun } as const);
  try {
    return await resume(what, parts, signal, observe);
  } catch (error) {
    if (!(error instanceof OffsiteError) || error.code !== 'START_AMBIGUOUS') throw error;
    observe({ kind: 'note', message: error.message });
    return { kind: 'never-started' };
  }
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
