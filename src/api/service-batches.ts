import pLimit from 'p-limit';
import type { Client } from '../client/client.ts';
import type { ListedRun } from '../client/pages/page-reader.ts';
import { NotFound } from '../client/refusal.ts';
import type { CaseEntry } from '../contract/catalog.ts';

/** A batch as the runs of a service show it. */
export interface ServiceBatch {
  id: string;
  suite: string;
  /** Epoch milliseconds; undefined if the service does not say. */
  startedAt: number | undefined;
  cases: number;
  /** Planned trials, and those that have a result. */
  trials: number;
  ended: number;
  passed: number;
  failed: number;
  void: number;
  /** Of scored trials, 0 to 1; undefined if there is none. */
  passRate: number | undefined;
  /** Whether the service runs it itself. */
  isPlatforms: boolean;
}

export interface ServiceBatches {
  /** Newest first. */
  batches: ServiceBatch[];
  /** The runs of each batch. */
  runs: ReadonlyMap<string, ListedRun<'results'>[]>;
  /** How many of the cases were not asked for. */
  casesLeft: number;
}

/** How many cases are asked for their newest runs, and at a time. */
const asked = { cases: 200, atATime: 4 };

/**
 * The newest batches of a service: it lists runs by cases, so this asks for the newest runs of each. Batches
 * that are so old that a case may have more runs of them are left out.
 */
export async function serviceBatches(
  client: Client,
  cases: readonly CaseEntry[],
  suite: string | undefined,
  signal: AbortSignal,
): Promise<ServiceBatches> {
  const ids = [...new Set(cases.map(({ id }) => id))];
  const limit = pLimit(asked.atATime);
  const pages = await Promise.all(
    ids.slice(0, asked.cases).map((caseId) => limit(() => newestRuns(client, caseId, signal))),
  );
  // Runs that began at or before this may have others of their batch on the next page.
  const horizon = Math.max(
    ...pages.map(({ runs, hasMore }) =>
      hasMore ? Math.min(...runs.map(startOf)) : Number.NEGATIVE_INFINITY,
    ),
    Number.NEGATIVE_INFINITY,
  );
  const wanted = pages
    .flatMap(({ runs }) => runs)
    .filter((run) => suite === undefined || run.suite === undefined || run.suite.id === suite);
  const runs = Map.groupBy(wanted, ({ batchId, id }) => batchId ?? id);
  const batches = [...runs]
    .map(([id, ofBatch]) => batchOf(id, ofBatch))
    .filter(({ startedAt }) => startedAt === undefined || startedAt > horizon)
    .toSorted((one, other) => (other.startedAt ?? 0) - (one.startedAt ?? 0));
  return { batches, runs, casesLeft: Math.max(0, ids.length - asked.cases) };
}

/** The batches that an id, or its beginning, names, with their runs. The id of a run stands for its batch. */
export function batchesNamed({ runs }: ServiceBatches, name: string): [string, ListedRun<'results'>[]][] {
  const begins = (id: string) => id.startsWith(name) || id.startsWith(`batch_${name}`);
  return [...runs].filter(([id, ofBatch]) => begins(id) || ofBatch.some((run) => run.id === name));
}

async function newestRuns(
  client: Client,
  caseId: string,
  signal: AbortSignal,
): Promise<{ runs: ListedRun<'results'>[]; hasMore: boolean }> {
  try {
    const { runs, total } = await client.page({ caseId, page: 1 }, { signal, parts: 'results' });
    return { runs, hasMore: runs.length > 0 && total > runs.length };
  } catch (error) {
    // No batch has been started for this case yet.
    if (error instanceof NotFound) return { runs: [], hasMore: false };
    throw error;
  }
}

function startOf({ startedAt = '' }: ListedRun): number {
  const at = Date.parse(startedAt);
  return Number.isNaN(at) ? Number.POSITIVE_INFINITY : at;
}

function batchOf(id: string, runs: readonly ListedRun<'results'>[]): ServiceBatch {
  const sum = (count: (run: ListedRun<'results'>) => number | undefined) =>
    runs.reduce((all, run) => all + (count(run) ?? 0), 0);
  const passed = sum(({ distribution }) => distribution?.passed);
  const failed = sum(({ distribution }) => distribution?.failed);
  const voided = sum(({ distribution }) => distribution?.voided);
  const began = Math.min(...runs.map(startOf));
  return {
    id,
    suite: runs[0]?.suite?.name ?? runs[0]?.suite?.id ?? '',
    startedAt: Number.isFinite(began) ? began : undefined,
    cases: new Set(runs.map((run) => run.case?.id)).size,
    trials: sum(({ distribution }) => distribution?.trials),
    ended: passed + failed + voided,
    passed,
    failed,
    void: voided,
    passRate: passed + failed === 0 ? undefined : passed / (passed + failed),
    isPlatforms: runs.some(({ local }) => local === false),
  };
}
