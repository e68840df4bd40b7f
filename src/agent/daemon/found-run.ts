import type { Client } from '../../client/client.ts';
import type { ListedRun } from '../../client/pages/page-reader.ts';
import { NotFound } from '../../client/refusal.ts';
import { limits } from '../../contract/definition.ts';
import type { RunKey } from '../../ledger/batches.ts';
import type { FoundRun } from '../../ledger/found-runs.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { daemonLock, type QueueScope } from '../../ledger/queue.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';
import { mayBeBeingStarted } from '../find-started.ts';
import { isKnownStatus } from '../reconcile.ts';
import type { FoundRunDetails } from '../specify.ts';
import type { PollTarget } from './poll-targets.ts';

/**
 * The ordinals of a run's trials that must run off the platform and that nobody has started. Empty if the run
 * is not local, or is over, or if it is {@link isUnclear}.
 */
export function queuedOrdinals(record: ListedRun): number[] {
  const { trials, distribution } = record;
  if (!isOpen(record)) return [];
  if (trials && trials.length > 0) {
    return trials.filter((trial) => trial.status === 'queued').map(({ ordinal }) => ordinal);
  }
  if (hasUnknownStatus(record)) return [];
  // A service may list a trial only after it is recorded; if it lists none, all planned trials are open.
  return Array.from({ length: distribution?.trials ?? 0 }, (_, ordinal) => ordinal);
}

/** Its trials decide whether a run is open, also where Offsite does not know its status. */
function isOpen({ local, status, trials = [] }: ListedRun): boolean {
  if (local !== true || status === 'canceled') return false;
  return status !== 'completed' || trials.some((trial) => trial.status === 'queued');
}

/** Whether a local run is passed over because neither its status nor those of its trials say what is open. */
export function isUnclear(record: ListedRun): boolean {
  const { trials = [] } = record;
  if (!isOpen(record)) return false;
  return trials.length === 0 ? hasUnknownStatus(record) : trials.some(({ status }) => !isKnownStatus(status));
}

function hasUnknownStatus({ status }: ListedRun): boolean {
  return status !== undefined && status !== 'queued' && status !== 'running';
}

/** Whether a run has trials to run, now or when another agent gives them back. */
export function mayHaveWork(record: ListedRun): boolean {
  const isRunning = record.trials?.some(({ status }) => status === 'running') ?? false;
  return (isOpen(record) && isRunning) || queuedOrdinals(record).length > 0;
}

interface SyncParts {
  ledger: Ledger;
  service: string;
  mayAdopt: boolean;
  /** Called if the run is listed without results that it had: the service was restored from a backup. */
  lost?(): void;
}

/**
 * Updates the ledger from a listed run: removes trials from the queue that another agent has ended. Resolves
 * with what adopts the run if it is new, may be adopted and has trials to run, and queues its trials that
 * another agent gave back; that returns whether there is more to do. The caller decides the order of the
 * queue, because a service lists the newest run first.
 */
export async function syncRun(
  record: ListedRun<'setup'>,
  caseId: string,
  { ledger, service, mayAdopt, lost }: SyncParts,
): Promise<() => boolean> {
  const batchId = record.batchId ?? record.id;
  const known = ledger.foundRuns.find(service, batchId, record.id);
  const ordinals = queuedOrdinals(record);
  if (known !== undefined) {
    const over = record.trials?.filter(({ status }) => status !== 'queued' && status !== 'running') ?? [];
    const ended = new Set(over.map(({ ordinal }) => ordinal));
    withdrawEnded(ledger, { service, lock: daemonLock }, record.id, ended);
    // The result that took the place of ours never came, or is lost: ours counts then.
    sendAgain(ledger, known, 'superseded', ordinals);
    const isLost = ({ report, ordinal }: StoredTrial) =>
      (report === 'delivered' || report === 'taken') && ordinals.includes(ordinal);
    if (ledger.outbox.ofRun(known).some(isLost)) lost?.();
    return () => ledger.foundRuns.adoptMore(known, ordinals);
  }
  if (ordinals.length === 0 || !mayAdopt) return () => false;
  const setup = record.setup && (await ledger.blobs.putJson(record.setup));
  const startedAt = record.startedAt === undefined ? undefined : Date.parse(record.startedAt);
  if (mayBeBeingStarted(ledger, service, startedAt)) return () => false;
  const found = { service, ...foundRun(record, caseId), setup, ordinals };
  return () => ledger.foundRuns.adopt(found);
}

/** What the ledger keeps of a listed run, besides its setup. */
export function foundRun(
  record: ListedRun,
  caseId: string,
): Omit<FoundRun, 'service' | 'setup' | 'ordinals' | 'details'> & { details: FoundRunDetails } {
  const details: FoundRunDetails = { variant: record.variant };
  return {
    batchId: record.batchId ?? record.id,
    suite: record.suite?.name ?? record.suite?.id ?? '',
    id: record.id,
    caseId,
    caseName: record.case?.name ?? caseId,
    variant: record.variant?.id ?? '',
    details,
  };
}

/** Sends the reports again that have a state, of those trials of a run that the service has no result of. */
export function sendAgain(
  { outbox }: Ledger,
  run: RunKey,
  state: StoredTrial['report'],
  open: readonly number[],
): void {
  for (const { key, ordinal, report } of outbox.ofRun(run))
    if (report === state && open.includes(ordinal)) outbox.become(key, 'queued');
}

/** Removes the trials of a run from the queue that ended elsewhere. */
export function withdrawEnded(
  { queue }: Ledger,
  scope: QueueScope,
  run: string,
  ended: ReadonlySet<number>,
): void {
  if (ended.size === 0) return;
  const elsewhere = queue.openTrials(scope, run).filter(({ ordinal }) => ended.has(ordinal));
  const keys = elsewhere.map(({ key }) => key);
  if (keys.length > 0) queue.withdraw(keys, 'elsewhere');
}

/** The ids of the cases that the service lists for a suite. */
export async function casesOf(suite: string, client: Client, signal: AbortSignal): Promise<string[]> {
  const { cases } = await client.call('evals.cases.list', { suite }, { signal });
  // A service that does not know this filter lists the cases of all suites.
  return cases.filter((one) => one.suite === undefined || one.suite.id === suite).map(({ id }) => id);
}

interface CaseLook {
  client: Client;
  /**
   * Receives each run, newest first, and how many runs in a row have no work. Runs of other suites than the
   * target's are not wanted. Resolves with whether the run brought work.
   */
  take(record: ListedRun<'setup'>, isWanted: boolean, inARow: number): Promise<boolean>;
}

/**
 * Looks for runs of a case with trials to run. Resolves with how many brought work. With `known`, it stops
 * after as many runs in a row without open trials as a page has, because runs with open trials are the
 * newest. A trial that another agent runs is open too: it may come back.
 */
export async function lookAtCase(
  { id: caseId, suite }: PollTarget,
  known: boolean,
  { client, take }: CaseLook,
  signal: AbortSignal,
): Promise<number> {
  const setups = { parts: 'setup', of: (run: ListedRun) => queuedOrdinals(run).length > 0 } as const;
  let brought = 0;
  let inARow = 0;
  let ofOneSuite: Promise<boolean> | undefined;
  try {
    for await (const record of client.runs({ caseId }, { signal, ...setups })) {
      const isOpen = queuedOrdinals(record).length > 0;
      if (isOpen && suite !== undefined && !record.suite) ofOneSuite ??= isOfOneSuite(caseId, client, signal);
      const isWanted = suite === undefined || (record.suite ? record.suite.id === suite : await ofOneSuite);
      inARow = mayHaveWork(record) ? 0 : inARow + 1;
      if (await take(record, isWanted === true, inARow)) brought++;
      if (known && inARow >= limits.runsPerPage) break;
    }
  } catch (error) {
    // No batch has been started for this case yet.
    if (!(error instanceof NotFound)) throw error;
  }
  return brought;
}

/**
 * Whether the service lists this case in at most one suite. Then a run record that names no suite counts as
 * one of the suite through which the case was found.
 */
async function isOfOneSuite(caseId: string, client: Client, signal: AbortSignal): Promise<boolean> {
  const { cases } = await client.call('evals.cases.list', {}, { signal });
  const suites = cases.flatMap(({ id, suite }) => (id === caseId && suite ? suite.id : []));
  return new Set(suites).size <= 1;
}
