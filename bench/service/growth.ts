import { fill, reportBody } from './fill.ts';
import { measure, percentile } from './load.ts';
import { startServer } from './server-process.ts';

/** How much longer an operation takes with many runs stored than with few. */
export interface Growth {
  operation: string;
  fewMs: number;
  manyMs: number;
  /** The median of the rounds' ratios. A round's time is that of its fastest tenth. */
  times: number;
}

interface Filled {
  /** The runs that wait for reports. */
  waiting: string[];
  runs: number;
}

const roundMs = 400;

const operations: Record<string, { path: string; body(at: Filled, sent: number): string | undefined }> = {
  'list, first page': { path: 'evals.runs.list', body: () => JSON.stringify({ caseId: 'listed' }) },
  'list, middle page': {
    path: 'evals.runs.list',
    body: ({ runs }, sent) =>
      JSON.stringify({ caseId: 'listed', page: 1 + ((runs / 40 + sent) % (runs / 20)) }),
  },
  'list, last page': {
    path: 'evals.runs.list',
    body: ({ runs }) => JSON.stringify({ caseId: 'listed', page: Math.ceil(runs / 20) }),
  },
  report: { path: 'evals.reportTrial', body: ({ waiting }, sent) => reportBody(waiting, sent) },
  start: { path: 'evals.start', body: () => startBody },
};

const startBody = JSON.stringify({
  suite: { id: 'bench', name: 'Bench', prompt: 'Mend the parser.' },
  cases: [{ id: 'listed', name: 'Listed', verify: 'npm test' }],
  variants: [{ model: 'one' }, { model: 'two' }],
  trials: 10,
  local: true,
});

/** Measures each operation at two services that take turns: one with few runs stored, one with many. */
export async function measureGrowth(
  folders: { few: string; many: string },
  key: string,
  sizes: { few: number; many: number },
  rounds: number,
): Promise<Growth[]> {
  const reports = (rounds + 1) * roundMs * 5;
  const few = fill(folders.few, key, { runs: sizes.few, reports });
  const many = fill(folders.many, key, { runs: sizes.many, reports });
  await using fewServer = await startServer('./service-server.ts', folders.few, key);
  await using manyServer = await startServer('./service-server.ts', folders.many, key);
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
  const growth: Growth[] = [];
  for (const [operation, { path, body }] of Object.entries(operations)) {
    const sent = { few: 0, many: 0 };
    const undisturbed = async (which: 'few' | 'many') => {
      const [{ url }, waiting] = which === 'few' ? [fewServer, few] : [manyServer, many];
      const { latenciesMs } = await measure({
        ...{ url, path: `/v1/${path}`, headers, connections: 1, forMs: roundMs },
        body: () => body({ waiting, runs: sizes[which] }, sent[which]++),
      });
      // Other work on the machine disturbs most requests.
      return percentile(latenciesMs, 0.1);
    };
    const measured: { fewMs: number; manyMs: number }[] = [];
    // The first round does not count: it is for the compilers.
    for (let round = 0; round <= rounds; round++) {
      const one = { fewMs: await undisturbed('few'), manyMs: await undisturbed('many') };
      if (round > 0) measured.push(one);
    }
    const median = (of: (one: { fewMs: number; manyMs: number }) => number) =>
      percentile(measured.map(of), 0.5);
    growth.push({
      operation,
      fewMs: median(({ fewMs }) => fewMs),
      manyMs: median(({ manyMs }) => manyMs),
      times: median(({ fewMs, manyMs }) => manyMs / fewMs),
    });
  }
  return growth;
}
