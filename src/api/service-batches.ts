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
  /** How many cases have older runs that were not read, and that may be of the named batch. */
  casesCut: number;
}

/** How many cases are asked for their newest runs, and at a time; and pages of older runs, of all cases. */
const asked = { cases: 200, atATime: 4, older: 100 };

/** How far the starts of the runs of one batch may be apart, in milliseconds. */
const startsApart = 10 * 60_000;

/**
 * The newest batches of a service: it lists runs by cases, so this asks for the newest runs of each. Batches
 * that are so old that a case may have more runs of them are left out.
 *
 * @param name an id of a batch or a run, or its beginning: older runs are read too that may be of that batch
 */
export async function serviceBatches(
  client: Client,
  cases: readonly CaseEntry[],
  suite: string | undefined,
  signal: AbortSignal,
  name?: string,
): Promise<ServiceBatches> {
  const ids = [...new Set(cases.map(({ id }) => id))];
  const limit = pLimit(asked.atATime);
  const pages = await Promise.all(
    ids.slice(0, asked.cases).map((caseId) => limit(() => newestRuns(client, caseId, signal))),
  );
  let open = name === undefined ? [] : mayHave(name, pages);
  for (let left = asked.older; open.length > 0 && left > 0; left -= open.length) {
    await Promise.all(open.slice(0, left).map((page) => limit(() => readOlder(client, page, signal))));
    open = mayHave(name ?? '', pages);
  }
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
  const casesLeft = Math.max(0, ids.length - asked.cases);
  return { batches, runs, casesLeft, casesCut: open.length };
}

/** The pages after which a batch may have further runs: all with older ones, until its start is known. */
function mayHave(name: string, pages: readonly CasePages[]): CasePages[] {
  const runs = Map.groupBy(
    pages.flatMap((page) => page.runs),
    ({ batchId, id }) => batchId ?? id,
  );
  const starts = batchesNamed({ runs }, name).flatMap(([, ofBatch]) => ofBatch.map(startOf));
  const first = Math.min(...starts);
  const since = Number.isFinite(first) ? first - startsApart : Number.NEGATIVE_INFINITY;
  return pages.filter((page) => page.hasMore && Math.min(...page.runs.map(startOf)) >= since);
}

/** The batches that an id, or its beginning, names, with their runs. The id of a run stands for its batch. */
export function batchesNamed(
  { runs }: Pick<ServiceBatches, 'runs'>,
  name: string,
): [string, ListedRun<'results'>[]][] {
  const begins = (id: string) => id.startsWith(name) || id.startsWith(`batch_${name}`);
  return [...runs].filter(([id, ofBatch]) => begins(id) || ofBatch.some((run) => run.id === name));
}

/** What was read of a case's runs, newest first. */
interface CasePages {
  caseId: string;
  page: number;
  runs: ListedRun<'results'>[];
  hasMore: boolean;
}

async function newestRuns(client: Client, caseId: string, signal: AbortSignal): Promise<CasePages> {
  try {
    const { runs, total } = await client.page({ caseId, page: 1 }, { signal, parts: 'results' });
    return { caseId, page: 1, runs, hasMore: runs.length > 0 && total > runs.length };
  } catch (error) {
    // No batch has been started for this case yet.
    if (error instanceof NotFound) return { caseId, page: 1, runs: [], hasMore: false };
    throw error;
  }
}

async function readOlder(client: Client, read: CasePages, signal: AbortSignal): Promise<void> {
  read.page++;
  const { caseId, page } = read;
  const { runs, total } = await client.page({ caseId, page }, { signal, parts: 'results' });
  const known = new Set(read.runs.map(({ id }) => id));
  // Runs that started meanwhile have moved others to this page.
  const older = runs.filter(({ id }) => !known.has(id));
  read.runs.push(...older);
  read.hasMore = older.length > 0 && total > read.runs.length;
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
