import { foundRuns } from '../bounds/service.ts';
import type { Client } from '../client/client.ts';
import type { ListedRun } from '../client/pages/page-reader.ts';
import type { StartResponse } from '../contract/definition.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { SuitePlan } from '../suite/plan.ts';

interface Wanted {
  askedAt: number;
  isLocal: boolean;
  isOwned: (batchId: string) => boolean;
}

/**
 * Searches for the batch that an unanswered call of `evals.start` may have started. Resolves with those that
 * fit: with the same cases and variants and the requested `local`, started after the call, and not in the
 * ledger. If there are several, it is unknown which of them is ours.
 *
 * @param askedAt epoch milliseconds before the call
 * @param isLocal whether its trials are reported, not run by the service
 * @param isOwned whether a batch is in the ledger already
 */
export async function findStarted(
  client: Client,
  plan: SuitePlan,
  { askedAt, isLocal, isOwned }: Wanted,
  signal: AbortSignal,
): Promise<StartResponse[]> {
  const since = askedAt - foundRuns.time.clockDifference;
  const byCase = new Map<string, ListedRun[]>();
  for (const { request } of plan.cases) {
    byCase.set(request.id, await recentRuns(client, request.id, { since, isLocal }, signal));
    // A batch has runs of every case: if the first case has none, there is no need to ask for the others.
    if (byCase.get(request.id)?.length === 0) return [];
  }
  const [first = []] = byCase.values();
  const candidates = [...new Set(first.flatMap(({ batchId }) => batchId ?? []))].filter((id) => !isOwned(id));
  return candidates.flatMap((id) => {
    const runs = startedRuns(id, plan, byCase);
    return runs ? [{ id, runs }] : [];
  });
}

async function recentRuns(
  client: Client,
  caseId: string,
  { since, isLocal }: { since: number; isLocal: boolean },
  signal: AbortSignal,
): Promise<ListedRun[]> {
  const runs: ListedRun[] = [];
  for await (const run of client.runs({ caseId }, { signal })) {
    if (run.startedAt !== undefined && Date.parse(run.startedAt) < since) break;
    if (run.local === undefined || run.local === isLocal) runs.push(run);
  }
  return runs;
}

/**
 * The batch's runs in the order in which we asked for them; undefined if they are not exactly what we asked
 * for.
 */
function startedRuns(
  batchId: string,
  plan: SuitePlan,
  byCase: ReadonlyMap<string, readonly ListedRun[]>,
): StartResponse['runs'] | undefined {
  const runs: StartResponse['runs'] = [];
  for (const { request } of plan.cases) {
    // The service lists the newest first; reversed, the runs are in the order in which they started.
    const left = (byCase.get(request.id) ?? [])
      .filter((run) => run.batchId === batchId && fits(run, plan))
      .toReversed();
    for (const [variantIndex, variant] of plan.variants.entries()) {
      const { harnessConnectionId, sandboxConnectionId } = variant.credentials;
      const at = left.findIndex(
        ({ variant: other }) =>
          other?.model === variant.model &&
          (other.harness ?? harnessConnectionId) === harnessConnectionId &&
          (other.sandbox ?? sandboxConnectionId) === sandboxConnectionId,
      );
      const [run] = at < 0 ? [] : left.splice(at, 1);
      if (!run) return undefined;
      runs.push({ id: run.id, caseId: request.id, variantIndex });
    }
    if (left.length > 0) return undefined;
  }
  return runs;
}

function fits({ suite, trials }: ListedRun, plan: SuitePlan): boolean {
  if (suite && suite.id !== plan.suite.id) return false;
  // A service may list a trial only after the trial is recorded.
  return (trials?.length ?? 0) <= plan.trials;
}

/**
 * Whether a batch that the ledger does not know may be one that a process of this data folder is starting
 * now: the service has the batch, but its id is not in the ledger yet. Ask again later.
 *
 * @param startedAt when the service started the batch, in epoch milliseconds, if that is known
 */
export function mayBeBeingStarted(
  ledger: Ledger,
  service: string,
  startedAt = Number.POSITIVE_INFINITY,
): boolean {
  return ledger.starts.open().some((start) => {
    if (start.service !== service || startedAt < start.askedAt - foundRuns.time.clockDifference) return false;
    // If the lock is free, the process is dead and nobody owns the batch.
    const lock = ledger.takeLock(start.lock);
    lock?.[Symbol.dispose]();
    return lock === undefined;
  });
}
