import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fill, reportOf } from './fill.ts';
import { measureGrowth, type Sizes, type Stored } from './growth.ts';
import { type Load, type Measured, measure, percentile } from './load.ts';
import { measurePage } from './page.ts';
import { startServer } from './server-process.ts';

/**
 * How fast the service accepts reports and lists runs, with few and many runs stored, next to the floor: see
 * floor-server.ts. The two take turns, second by second, so that other work on the machine disturbs both
 * alike. Then how much longer operations take with many runs than with few, and how fast and in how much
 * memory a large page is read. `node bench/service/main.ts [--json] [--quick]`; uses only loopback, each
 * server in its own process.
 */
const { values } = parseArgs({
  options: { json: { type: 'boolean', default: false }, quick: { type: 'boolean', default: false } },
});
const sizes = values.quick ? { few: 100, many: 1_000 } : { few: 1_000, many: 100_000 };
const rounds = values.quick ? 2 : 5;
const pairs = values.quick ? 30 : 200;
const roundMs = values.quick ? 300 : 700;
const connectionCounts = [1, 16];
const key = 'bench-key-not-a-secret';
const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
const listBody = JSON.stringify({ caseId: 'listed' });

interface Speed {
  requestsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
}

interface Row {
  operation: string;
  storedRuns: number;
  connections: number;
  answerBytes: number;
  service: Speed;
  floor: Speed;
  /** The median of the rounds' ratios of requests per second. */
  overFloor: number;
}

async function inFolder<Result>(work: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-bench-'));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function store(folder: string, runs: number): Stored {
  // More reports than can be sent in the time: each is for a trial without a report.
  const reports = (rounds + 1) * roundMs * 8 * connectionCounts.length;
  return { folder, runs, waiting: fill(folder, key, { runs, reports }) };
}

/** A measurement changes what is stored, so each has a copy. */
function copied<Result>(stored: Stored, work: (copy: Stored) => Promise<Result>): Promise<Result> {
  return inFolder((folder) => {
    cpSync(stored.folder, folder, { recursive: true });
    return work({ ...stored, folder });
  });
}

type Turn = Pick<Load, 'url' | 'body'>;

/** The first round does not count, because the code is compiled while it runs. */
async function compare(
  what: Pick<Row, 'operation' | 'storedRuns' | 'connections'>,
  turns: { service: Turn; floor: Turn },
): Promise<Row> {
  const shared = { path: `/v1/${what.operation}`, headers, connections: what.connections, forMs: roundMs };
  const measured: Record<'service' | 'floor', Measured>[] = [];
  for (let round = 0; round <= rounds; round++) {
    const floor = await measure({ ...shared, ...turns.floor });
    const service = await measure({ ...shared, ...turns.service });
    if (round > 0) measured.push({ floor, service });
  }
  const speed = (of: 'service' | 'floor'): Speed => {
    const latencies = measured.flatMap((round) => round[of].latenciesMs);
    return {
      requestsPerSecond: percentile(
        measured.map((round) => round[of].requestsPerSecond),
        0.5,
      ),
      p50Ms: percentile(latencies, 0.5),
      p99Ms: percentile(latencies, 0.99),
    };
  };
  const ratios = measured.map(({ floor, service }) => service.requestsPerSecond / floor.requestsPerSecond);
  return {
    ...what,
    answerBytes: measured[0]?.service.answerBytes ?? 0,
    service: speed('service'),
    floor: speed('floor'),
    overFloor: percentile(ratios, 0.5),
  };
}

function print({ operation, storedRuns, connections, service, floor, overFloor }: Row): void {
  const speeds = [service, floor].flatMap(({ requestsPerSecond, p50Ms, p99Ms }) => [
    requestsPerSecond.toFixed(0).padStart(8),
    p50Ms.toFixed(2).padStart(8),
    p99Ms.toFixed(2).padStart(8),
  ]);
  console.log(
    operation.padEnd(18),
    storedRuns.toLocaleString('en').padStart(8),
    `${connections}`.padStart(5),
    ...speeds,
    overFloor.toFixed(2).padStart(8),
  );
}

if (!values.json) {
  console.log('                                  | service                   | floor                     |');
  console.log(
    'operation              runs  conn     req/s   p50 ms   p99 ms    req/s   p50 ms   p99 ms  x floor',
  );
}

async function measureRows({ folder, runs, waiting }: Stored): Promise<Row[]> {
  const rows: Row[] = [];
  await using service = await startServer('./service-server.ts', folder, key);
  const once = { path: '/v1/evals.runs.list', headers, connections: 1, forMs: 1, body: () => listBody };
  const { answerBytes } = await measure({ ...once, url: service.url });
  await using floor = await startServer('./floor-server.ts', folder, `${answerBytes}`);
  let sent = 0;
  const report = (request: number) => JSON.stringify(reportOf(waiting, request));
  const aReport = report(0);
  for (const connections of connectionCounts) {
    const turnsOf = {
      'evals.reportTrial': {
        service: { url: service.url, body: () => report(sent++) },
        floor: { url: floor.url, body: () => aReport },
      },
      'evals.runs.list': {
        service: { url: service.url, body: () => listBody },
        floor: { url: floor.url, body: () => listBody },
      },
    };
    for (const [operation, turns] of Object.entries(turnsOf)) {
      const row = await compare({ operation, storedRuns: runs, connections }, turns);
      rows.push(row);
      if (!values.json) print(row);
    }
  }
  return rows;
}

const [rows, growth] = await inFolder((fewFolder) =>
  inFolder(async (manyFolder) => {
    const stored: Sizes = { few: store(fewFolder, sizes.few), many: store(manyFolder, sizes.many) };
    const measured = [
      ...(await copied(stored.few, measureRows)),
      ...(await copied(stored.many, measureRows)),
    ];
    const copies = <Result>(work: (sizes: Sizes) => Promise<Result>) =>
      copied(stored.few, (few) => copied(stored.many, (many) => work({ few, many })));
    return [measured, await measureGrowth(copies, key, { rounds: values.quick ? 1 : 3, pairs })];
  }),
);
const page = await inFolder((folder) => measurePage(folder, key, values.quick ? 500_000 : 5_000_000));

if (values.json) console.log(JSON.stringify({ rounds, roundMs, rows, growth, page }, undefined, 2));
else printGrowthAndPage();

function printGrowthAndPage(): void {
  const count = (runs: number) => runs.toLocaleString('en');
  console.log(`\nfrom ${count(sizes.few)} to ${count(sizes.many)} runs, ${pairs} pairs a round`);
  console.log(
    '                         ms    more ms    ratio   of rounds   pages read   pages written   load',
  );
  for (const { operation, fewMs, moreMs, times, rounds, pages, load } of growth)
    console.log(
      operation.padEnd(18),
      fewMs.toFixed(2).padStart(8),
      moreMs.toFixed(2).padStart(10),
      times.toFixed(2).padStart(8),
      rounds
        .map((ratio) => ratio.toFixed(2))
        .join('-')
        .padStart(11),
      `${pages.few.read} to ${pages.many.read}`.padStart(12),
      `${pages.few.written} to ${pages.many.written}`.padStart(15),
      load.toFixed(1).padStart(6),
    );
  const { bytes, client, floor, servicePeakMiB, others } = page;
  console.log(`\na page of ${Math.round(bytes / 1e6)} MB, load ${loadavg()[0]?.toFixed(1)}`);
  for (const [name, { mbPerSecond, peakMiB }] of Object.entries({ client, floor }))
    console.log(name.padEnd(18), `${mbPerSecond.toFixed(0)} MB/s`, `${peakMiB} MiB`);
  console.log('service'.padEnd(18), `${servicePeakMiB} MiB`);
  const { p50Ms, p99Ms, longestMs } = others;
  console.log('others wait'.padEnd(18), ...[p50Ms, p99Ms, longestMs].map((ms) => `${ms.toFixed(1)} ms`));
}
