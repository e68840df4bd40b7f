import { loadavg } from 'node:os';
import { Pool } from 'undici';
import type { StartRequest } from '../../src/contract/definition.ts';
import { inTransaction } from '../../src/ledger/database.ts';
import type { Call } from '../../src/service/operations/call.ts';
import { listRuns } from '../../src/service/operations/handlers.ts';
import { reportTrial } from '../../src/service/operations/report-trial.ts';
import { startBatch } from '../../src/service/operations/start.ts';
import { countPages, type PageCounts } from '../../test/service/page-counts.ts';
import { inStore, reportOf } from './fill.ts';
import { ask, percentile } from './load.ts';
import { startServer } from './server-process.ts';

/** How much longer an operation takes with many runs stored than with few. Times are milliseconds. */
export interface Growth {
  operation: string;
  /** The median. */
  fewMs: number;
  /** The median, over all pairs, of how much longer the request with many runs took. */
  moreMs: number;
  /** `(fewMs + moreMs) / fewMs`: 1 if both take the same time. */
  times: number;
  /** The same for each round, the least and the most. */
  rounds: [number, number];
  /** The pages of the database that it touches. These do not depend on what else the machine does. */
  pages: { few: PageCounts; many: PageCounts };
  /** The machine's load average over a minute, at the end. */
  load: number;
}

/** A service.db with `runs` finished runs, and others that wait for reports. */
export interface Stored {
  folder: string;
  runs: number;
  waiting: string[];
}

export interface Sizes {
  few: Stored;
  many: Stored;
}

interface Operation {
  path: string;
  /** Of the n-th request. */
  body(stored: Stored, request: number): object | undefined;
  /** The same without HTTP. */
  answer(call: Call, body: never): void;
}

/** Pairs that do not count, because the code is compiled while they run. */
const warmUp = 30;

const start: StartRequest = {
  suite: { id: 'bench', name: 'Bench', prompt: 'Mend the parser.' },
  cases: [{ id: 'listed', name: 'Listed', verify: 'npm test' }],
  variants: [{ model: 'one' }, { model: 'two' }],
  trials: 10,
  local: true,
};

const list = (page: (runs: number, request: number) => number): Operation => ({
  path: 'evals.runs.list',
  body: ({ runs }, request) => ({ caseId: 'listed', page: page(runs, request) }),
  answer(call, body) {
    for (const _ of listRuns(call, body).pieces);
  },
});
const operations: Record<string, Operation> = {
  'list, first page': list(() => 1),
  'list, middle page': list((runs, request) => 1 + ((Math.ceil(runs / 40) + request) % (runs / 20))),
  'list, last page': list((runs) => Math.ceil(runs / 20)),
  report: {
    path: 'evals.reportTrial',
    body: ({ waiting }, request) => reportOf(waiting, request),
    answer: (call, body) => void reportTrial(call, body),
  },
  start: {
    path: 'evals.start',
    body: () => start,
    answer: (call, body) => void startBatch(call, body),
  },
};

/**
 * Measures each operation at two services, one with few runs stored and one with many. Every request to one
 * is followed by the same request to the other, so that whatever else the machine does disturbs both alike.
 *
 * @param copies makes copies of both databases for a round
 */
export async function measureGrowth(
  copies: <Result>(work: (sizes: Sizes) => Promise<Result>) => Promise<Result>,
  key: string,
  { rounds, pairs }: { rounds: number; pairs: number },
): Promise<Growth[]> {
  const measured: Record<string, [few: number, many: number][][]> = {};
  for (let round = 0; round < rounds; round++)
    for (const [name, ofRound] of await copies((sizes) => measureRound(sizes, key, pairs)))
      measured[name] = [...(measured[name] ?? []), ofRound];
  const load = loadavg()[0] ?? Number.NaN;
  const pages = await copies(async (sizes) => ({
    few: pagesOf(sizes.few, key),
    many: pagesOf(sizes.many, key),
  }));
  return Object.entries(measured).map(([operation, all]) => {
    const ratios = all.map((ofRound) => growthOf(ofRound).times);
    return {
      operation,
      ...growthOf(all.flat()),
      rounds: [Math.min(...ratios), Math.max(...ratios)],
      pages: { few: pages.few[operation] as PageCounts, many: pages.many[operation] as PageCounts },
      load,
    };
  });
}

function growthOf(pairs: [few: number, many: number][]) {
  const median = (values: number[]) => percentile(values, 0.5);
  const fewMs = median(pairs.map(([few]) => few));
  const moreMs = median(pairs.map(([few, many]) => many - few));
  return { fewMs, moreMs, times: (fewMs + moreMs) / fewMs };
}

async function measureRound(
  { few, many }: Sizes,
  key: string,
  pairs: number,
): Promise<[operation: string, pairs: [few: number, many: number][]][]> {
  await using fewServer = await startServer('./service-server.ts', few.folder, key);
  await using manyServer = await startServer('./service-server.ts', many.folder, key);
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
  const toFew = new Pool(fewServer.url, { connections: 1 });
  const toMany = new Pool(manyServer.url, { connections: 1 });
  const measured: [string, [number, number][]][] = [];
  for (const [name, { path, body }] of Object.entries(operations)) {
    const ofOperation: [few: number, many: number][] = [];
    for (let request = 0; request < warmUp + pairs; request++) {
      const send = async (pool: Pool, stored: Stored) =>
        (await ask(pool, { path: `/v1/${path}`, headers, body: JSON.stringify(body(stored, request)) })).ms;
      // Each is the first of the pair in turn.
      const first = request % 2 === 0 ? await send(toMany, many) : undefined;
      const fewMs = await send(toFew, few);
      ofOperation.push([fewMs, first ?? (await send(toMany, many))]);
    }
    measured.push([name, ofOperation.slice(warmUp)]);
  }
  await Promise.all([toFew.close(), toMany.close()]);
  return measured;
}

function pagesOf(stored: Stored, key: string): Record<string, PageCounts> {
  return inStore(stored.folder, key, (call, database) => {
    let request = 0;
    return Object.fromEntries(
      Object.entries(operations).map(([name, { body, answer }]) => [
        name,
        countPages(database, () =>
          inTransaction(database, () => answer(call, body(stored, request++) as never)),
        ),
      ]),
    );
  });
}
