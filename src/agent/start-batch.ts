import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { infrastructureError, inputError, messageOf, type OffsiteError } from '../base/offsite-error.ts';
import type { Client } from '../client/client.ts';
import type { ListedRun } from '../client/pages/page-reader.ts';
import { UnknownOutcome } from '../client/refusal.ts';
import type { StartResponse } from '../contract/definition.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Lock } from '../ledger/lock.ts';
import { platformService } from '../ledger/platform.ts';
import type { PulledRun } from '../ledger/queue.ts';
import type { OpenStart, PartKey } from '../ledger/starts.ts';
import { planFacts, type SuitePlan, startRequest } from '../suite/plan.ts';
import { expandVariables } from '../suite/variables.ts';
import { type OpenBatch, openBatch, plannedRun, type Run, readPlan, storedPlan } from './batch-run.ts';
import { findStarted } from './find-started.ts';
import { recordsOf } from './reconcile.ts';

/**
 * Milliseconds before each search for a batch whose start got no answer: the service may still be starting
 * it.
 */
const lookAfterMs = [1_000, 4_000, 10_000];

export interface StartParts {
  client: Client;
  ledger: Ledger;
  clock: Clock;
  /** The service's name in the ledger. */
  service: string;
  /** The part of a set that becomes the batch. */
  part?: PartKey | undefined;
}

/** A batch together with the lock that keeps other processes from it. */
export interface LockedBatch {
  batch: OpenBatch;
  lock: Lock;
}

/**
 * Starts a planned batch at the service. The intent is on disk before the service is asked, so no batch is
 * forgotten and none is started twice: if the answer is lost, we search for the batch. Throws what the call
 * threw, `START_UNKNOWN` and `START_AMBIGUOUS`.
 */
export async function startBatch(
  plan: SuitePlan,
  parts: StartParts,
  signal: AbortSignal,
): Promise<LockedBatch> {
  const name = `batch-${randomUUID()}`;
  const lock = parts.ledger.takeLock(name);
  if (!lock) throw new Error(`another process holds the new lock ${name}`);
  try {
    return { batch: await startUnder(name, plan, parts, signal), lock };
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
}

/**
 * Starts a planned batch like {@link startBatch}, under a lock that the caller already holds.
 *
 * @param lock the lock's name
 */
export async function startUnder(
  lock: string,
  plan: SuitePlan,
  { client, ledger, clock, service, part }: StartParts,
  signal: AbortSignal,
): Promise<OpenBatch> {
  const stored = {
    plan: await ledger.blobs.putJson(storedPlan(plan)),
    // A later command may run in another folder.
    file: resolve(plan.file),
  };
  const start = ledger.starts.add({ service, suite: plan.suite.name, ...stored, lock, part });
  const started = await askToStart(plan, start, { client, ledger, clock }, signal);
  return recordBatch(plan, start, started, ledger);
}

async function askToStart(
  plan: SuitePlan,
  start: OpenStart,
  { client, ledger, clock }: Pick<StartParts, 'client' | 'ledger' | 'clock'>,
  signal: AbortSignal,
): Promise<StartResponse> {
  try {
    const by = start.service === platformService ? 'platform' : 'local';
    return await client.call('evals.start', startRequest(plan, by), { signal });
  } catch (error) {
    if (!(error instanceof UnknownOutcome)) {
      ledger.starts.refused(start.key, messageOf(error));
      throw error;
    }
    // On an interruption, `offsite resume` searches for the batch later.
    signal.throwIfAborted();
    for (const ms of lookAfterMs) {
      await clock.sleep(ms, signal);
      const found = await lookFor(plan, start, { client, ledger }, signal);
      if (found) return found;
    }
    ledger.starts.unknown(start.key, error.message);
    throw infrastructureError(
      'START_UNKNOWN',
      `it is unknown whether the service started the batch, and it lists no batch that fits: ${error.detail}`,
      {
        hint: 'No trial ran. `offsite service runs` shows whether the batch exists. If not, run the suite again.',
        cause: error,
      },
    );
  }
}

/**
 * The batch that an unanswered call started; undefined if there is none. Throws `START_AMBIGUOUS` if several
 * batches fit.
 */
async function lookFor(
  plan: SuitePlan,
  start: OpenStart,
  { client, ledger }: Pick<StartParts, 'client' | 'ledger'>,
  signal: AbortSignal,
): Promise<StartResponse | undefined> {
  const isOwned = (id: string) => ledger.batches.has(start.service, id);
  const { askedAt } = start;
  const isLocal = start.service !== platformService;
  const [found, ...others] = await findStarted(client, plan, { askedAt, isLocal, isOwned }, signal);
  if (!found || others.length === 0) return found;
  const ids = [found, ...others].map(({ id }) => id).join(', ');
  ledger.starts.unknown(start.key, `several fit: ${ids}`);
  throw infrastructureError(
    'START_AMBIGUOUS',
    `the answer to evals.start was lost, and several batches at the service fit: ${ids}`,
    {
      hint: 'No trial was run, so that none runs twice. If you need none of these batches, run the suite again.',
    },
  );
}

/**
 * The batch of a start whose answer was never read; undefined if the service has none, which ends the start.
 * The caller holds the start's lock. Throws `START_AMBIGUOUS`.
 */
export async function lostBatch(
  start: OpenStart,
  parts: Pick<StartParts, 'ledger' | 'client'>,
  signal: AbortSignal,
): Promise<OpenBatch | undefined> {
  const { ledger } = parts;
  // The process that held the lock before us may have read the answer.
  const known = ledger.batches.ofStart(start.key);
  if (known) return openBatch(known, ledger);
  const plan = readPlan(ledger.blobs.readJson(start.plan));
  const found = await lookFor(plan, start, parts, signal);
  if (found) return recordBatch(plan, start, found, ledger);
  ledger.starts.unknown(start.key, 'the service lists no such batch');
  return undefined;
}

/** Puts a started batch into the ledger. */
export function recordBatch(
  plan: SuitePlan,
  start: OpenStart,
  { id, runs }: StartResponse,
  ledger: Ledger,
): OpenBatch {
  const { key } = ledger.batches.add({
    service: start.service,
    id,
    suite: start.suite,
    file: start.file,
    plan: start.plan,
    lock: start.lock,
    start: start.key,
    ...planFacts(plan),
    runs: runs.map((run, taskIndex) => {
      const planned = plannedRun(plan, run);
      return { ...run, taskIndex, caseName: planned.case.request.name, variant: planned.variant.name };
    }),
  });
  return openBatch({ key, id, plan: start.plan }, ledger, plan);
}

/**
 * The plan with its prompt as text, read from the service if the service holds it. Throws an `input` error if
 * that text names a variable that a case does not have. (A prompt in the suite file is checked when the file
 * is read.)
 */
export async function withPrompt(plan: SuitePlan, client: Client, signal: AbortSignal): Promise<SuitePlan> {
  const { prompt } = plan.suite;
  if (prompt.kind === 'text') return plan;
  const { id, channel, version } = prompt;
  const { content } = await client.call('prompts.get', { id, channel, version }, { signal });
  const unknown = plan.cases.flatMap(({ request }) => {
    const names: string[] = [];
    expandVariables(content, request.variables ?? {}, (name) => names.push(name));
    return names.map((name) => `{{${name}}} in case ${request.id}`);
  });
  if (unknown.length > 0) {
    throw inputError(
      'PROMPT_VARIABLE_UNKNOWN',
      `the service's prompt ${id} uses variables that are not defined: ${unknown.join(', ')}`,
      { hint: `Add the variables to ${plan.file}, or promote another version of the prompt.` },
    );
  }
  return { ...plan, suite: { ...plan.suite, prompt: { kind: 'text', text: content } } };
}

type PullParts = Pick<StartParts, 'client' | 'ledger'>;

/**
 * Pulls the setups that the ledger does not have yet, and queues the trials of their runs, even if a setup is
 * unusable.
 */
export async function pullSetups(batch: OpenBatch, parts: PullParts, signal: AbortSignal): Promise<void> {
  parts.ledger.queue.add(await missingSetups(batch, parts, signal));
}

/**
 * Pulls the setups that the ledger does not have yet, into its blobs. Throws `RUN_NOT_LISTED` if the service
 * does not list a run that it started.
 */
export async function missingSetups(
  batch: OpenBatch,
  { client, ledger }: PullParts,
  signal: AbortSignal,
): Promise<PulledRun[]> {
  const unknown = batch.runs.filter(({ setup }) => setup === undefined);
  const records = new Map<Run, ListedRun<'setup'>>();
  for await (const [run, record] of recordsOf(unknown, 'setup', client, signal)) {
    if (!record) throw notListed(run);
    records.set(run, record);
  }
  const pulled: PulledRun[] = [];
  for (const run of unknown) {
    const record = records.get(run);
    if (record) pulled.push(await pulledRun(run, record, batch.plan.trials, ledger));
  }
  return pulled;
}

function notListed({ id, caseId }: Run): OffsiteError {
  return infrastructureError(
    'RUN_NOT_LISTED',
    `the service started run ${id} but does not list it for case ${caseId}`,
    { hint: 'Check that the key may read runs (evals:read) and belongs to the right organization.' },
  );
}

async function pulledRun(
  run: Run,
  record: ListedRun<'setup'>,
  trials: number,
  ledger: Ledger,
): Promise<PulledRun> {
  const listed = record.trials?.map(({ ordinal }) => ordinal) ?? [];
  // A service may list a trial only after the trial is recorded.
  const ordinals = listed.length > 0 ? listed : Array.from({ length: trials }, (_, n) => n);
  const setup = record.setup && (await ledger.blobs.putJson(record.setup));
  return { key: run.key, setup, variantId: record.variant?.id, ordinals };
}
