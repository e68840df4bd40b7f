import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Pool } from 'undici';
import { runVariants } from '../../src/service/record/setup.ts';
import { percentile } from '../service/load.ts';
import { startServer } from '../service/server-process.ts';

/** How long an honest client waits while others attack the service with keys of their own. */
export interface Attacked {
  attack: string;
  /** Of the honest client's requests, in milliseconds. */
  p99Ms: number;
  maxMs: number;
  honest: number;
  /** How many requests of the attack were answered, by status. */
  answered: Record<string, number>;
  /** The most memory that the service has had so far. */
  peakMiB: number;
}

interface Attack {
  /** Sent once by each key before the attack. */
  before?: readonly Asked[];
  /** Sent again and again by each key, over two connections. */
  sends: (turn: number, ids: readonly string[]) => Asked;
}

type Asked = readonly [operation: string, body: unknown];

const hostileKeys = ['hostile-key-1', 'hostile-key-2', 'hostile-key-3', 'hostile-key-4'];
const megabyte = 1024 * 1024;
const honestStart = start({ cases: [{ id: 'honest', name: 'Honest' }] });

/** The service's folder must be empty. */
export async function measureAttacks(folder: string, forMs: number, only?: string): Promise<Attacked[]> {
  const key = 'honest-key';
  await using server = await startServer('../service/service-server.ts', folder, key, ...hostileKeys);
  const pool = new Pool(server.url, { connections: 16, headersTimeout: 120_000, bodyTimeout: 120_000 });
  const ids = idsOf((await send(pool, key, ['evals.start', honestStart])).text);
  const client = fork(fileURLToPath(new URL('./honest-client.ts', import.meta.url)), [
    server.url,
    key,
    ids[0] ?? '',
  ]);
  preferred(server.pid, client.pid ?? 0);
  const waits = async () => {
    client.send('waits');
    const [took] = await once(client, 'message');
    return took as number[];
  };
  const results: Attacked[] = [];
  try {
    for (const [attack, { before = [], sends }] of Object.entries(attacks)) {
      if (only !== undefined && !attack.includes(only)) continue;
      const found: Record<string, readonly string[]> = {};
      for (const hostile of hostileKeys)
        for (const asked of before) found[hostile] = idsOf((await send(pool, hostile, asked)).text);
      await setTimeout(300);
      await waits();
      const answered: Record<string, number> = {};
      const until = performance.now() + forMs;
      const connections = [...hostileKeys, ...hostileKeys].map(async (hostile, index) => {
        for (let turn = index; performance.now() < until; turn += hostileKeys.length * 2) {
          const { status } = await send(pool, hostile, sends(turn, found[hostile] ?? []));
          answered[status] = (answered[status] ?? 0) + 1;
        }
      });
      await Promise.all(connections);
      const took = await waits();
      results.push({
        attack,
        p99Ms: percentile(took, 0.99),
        maxMs: Math.max(...took),
        honest: took.length,
        answered,
        peakMiB: peakOf(server.pid),
      });
    }
  } finally {
    client.disconnect();
    await pool.destroy();
  }
  return results;
}

function start(change: Record<string, unknown>) {
  return {
    suite: { id: 'suite', name: 'Suite', prompt: 'Mend it.' },
    cases: [{ id: 'case', name: 'Case' }],
    variants: [{ model: 'model' }],
    trials: 10,
    local: true,
    ...change,
  };
}

const aHundred = <Entry>(entry: (index: number) => Entry) =>
  Array.from({ length: 100 }, (_, index) => entry(index));
const variants = Array.from({ length: 20 }, (_, index) => ({ model: `m${index}` }));
const text = (megabytes: number) => 'Text with "quotes" and\nlines. '.repeat((megabytes * megabyte) / 34);
const report = (id: string, ordinal: number, change: object, outcome: object = {}) => ({
  id,
  trial: { caseName: 'Case', ordinal, taskIndex: 0, events: [], outcome, ...change },
});
const command = { _tag: 'command', command: 'make', exitCode: 0, output: '' };
const [again] = runVariants([{ model: 'm' }]);
const listed = (caseId: string): Asked => ['evals.runs.list', { caseId }];

const attacks: Record<string, Attack> = {
  'nothing (4 other keys ask who they are)': { sends: () => ['auth.whoami', {}] },
  'starts of 2,000 runs': {
    sends: (turn) => [
      'evals.start',
      start({ cases: aHundred((index) => ({ id: `c${turn}-${index}`, name: 'C' })), variants }),
    ],
  },
  'starts of 2,000 runs with the longest ids': {
    sends: (turn) => [
      'evals.start',
      start({
        suite: { id: 's'.repeat(200), name: 'S', prompt: 'p' },
        cases: aHundred((index) => ({ id: `c${turn}-${index}`.padEnd(200, 'x'), name: 'C'.repeat(200) })),
        variants: variants.map(({ model }) => ({ model: model.padEnd(200, 'm') })),
      }),
    ],
  },
  'starts with manifests of 20,000 entries': {
    sends: (turn) => {
      const manifest = Array.from({ length: 20_000 }, (_, index) => ({ index, name: `v${index}` }));
      const validator = { name: 'v', source: 'x', manifest };
      return ['evals.start', start({ cases: [{ id: `c${turn}`, name: 'C', validator }] })];
    },
  },
  'starts with a prompt of 7 MB': {
    sends: (turn) => [
      'evals.start',
      start({ suite: { id: 's', name: 'S', prompt: text(7) }, cases: [{ id: `c${turn}`, name: 'C' }] }),
    ],
  },
  'starts of 100 cases with the longest prompt': {
    sends: (turn) => [
      'evals.start',
      start({
        suite: { id: 's', name: 'S', prompt: text(0.48) },
        cases: aHundred((index) => ({ id: `c${turn}-${index}`, name: 'C' })),
      }),
    ],
  },
  'starts with variables of 7 MB': {
    sends: (turn) => {
      const variables = {
        list: Array.from({ length: 190_000 }, (_, index) => `value ${index}, and more text`),
      };
      return [
        'evals.start',
        start({ cases: [{ id: `c${turn}`, name: 'C', variables, verify: '{{list}}' }] }),
      ];
    },
  },
  'starts with tags of 7 MB': {
    sends: (turn) => ['evals.start', start({ cases: [{ id: `t${turn}`, name: 'C', tags: [text(7)] }] })],
  },
  'starts with 300,000 wrong values': {
    sends: () => [
      'evals.start',
      start({ cases: Array(100).fill({ validator: { manifest: Array(3_000).fill(0) } }) }),
    ],
  },
  'lists of runs with the longest prompts': {
    before: [
      [
        'evals.start',
        start({
          suite: { id: 's', name: 'S', prompt: text(0.48) },
          cases: [{ id: 'long', name: 'C' }],
          variants,
        }),
      ],
    ],
    sends: () => listed('long'),
  },
  'lists of runs with the longest variables': {
    before: [
      [
        'evals.start',
        start({
          cases: [
            { id: 'values', name: 'C', variables: { list: Array(45_000).fill('value, and more text') } },
          ],
          variants,
        }),
      ],
    ],
    sends: () => listed('values'),
  },
  'lists of runs whose texts are 64 MB': {
    before: [
      [
        'evals.start',
        start({
          cases: [{ id: 'expanded', name: 'C', verify: '{{a}}'.repeat(60), variables: { a: text(1) } }],
          variants,
        }),
      ],
    ],
    sends: () => listed('expanded'),
  },
  'lists of 2,000 cases with the most tags': {
    before: Array.from({ length: 20 }, (_, index) => [
      'evals.start',
      start({
        cases: aHundred((one) => ({
          id: `tag${index}-${one}`,
          name: 'C',
          tags: Array(64).fill('t'.repeat(200)),
        })),
      }),
    ]),
    sends: () => ['evals.cases.list', {}],
  },
  'lists of 2,000 cases with the longest names': {
    before: Array.from({ length: 20 }, (_, batch) => [
      'evals.start',
      start({
        cases: aHundred((index) => ({
          id: `n${batch}-${index}`.padEnd(200),
          name: 'C'.repeat(200),
          tags: Array(100).fill('t'.repeat(100)),
        })),
      }),
    ]),
    sends: () => ['evals.cases.list', {}],
  },
  'baselines of many cells': {
    before: [['evals.start', start({ cases: [{ id: 'base', name: 'C' }], variants })]],
    sends: () => ['evals.baseline', { caseId: 'base' }],
  },
  'prompts of 1 MB': {
    sends: () => ['prompts.write', { id: 'prompt', content: text(1) }],
  },
  'prompts that are read': {
    before: [['prompts.write', { id: 'prompt', content: text(0.4) }]],
    sends: () => ['prompts.get', { id: 'prompt' }],
  },
  'reports of 50,000 commands, which are refused': {
    before: [['evals.start', start({ variants })]],
    sends: (turn, ids) => [
      'evals.reportTrial',
      report(ids[turn % 20] ?? '', turn % 10, { events: Array(50_000).fill(command) }),
    ],
  },
  'reports of 7 MB': {
    before: [['evals.start', start({ variants })]],
    sends: (turn, ids) => [
      'evals.reportTrial',
      report(ids[turn % 20] ?? '', turn % 10, { events: [{ ...command, output: text(7) }] }),
    ],
  },
  'reports of 7 MB that differ from the first': {
    before: [['evals.start', start({ variants })]],
    sends: (turn, ids) => [
      'evals.reportTrial',
      report(ids[0] ?? '', 0, { events: [{ ...command, output: `${turn}${text(7)}` }] }),
    ],
  },
  'reports with 60,000 verify steps': {
    before: [['evals.start', start({ variants })]],
    sends: (turn, ids) => [
      'evals.reportTrial',
      report(
        ids[turn % 20] ?? '',
        turn % 10,
        {},
        { verifySteps: Array(60_000).fill({ command: 'x', exitCode: 0 }) },
      ),
    ],
  },
  'reports with 30,000 validations': {
    before: [['evals.start', start({ variants })]],
    sends: (turn, ids) => [
      'evals.reportTrial',
      report(
        ids[turn % 20] ?? '',
        turn % 10,
        {},
        {
          validations: Array.from({ length: 30_000 }, (_, index) => ({
            id: `v${index}`,
            index,
            name: 'v',
            exitCode: 0,
          })),
        },
      ),
    ],
  },
  'reports with events of other kinds': {
    before: [['evals.start', start({ variants })]],
    sends: (turn, ids) => [
      'evals.reportTrial',
      report(ids[turn % 20] ?? '', turn % 10, {
        events: [{ _tag: 'other', values: Array(350_000).fill(0) }],
      }),
    ],
  },
  'lists of runs with scripts of 7 MB': {
    before: [['evals.start', start({ cases: [{ id: 'script', name: 'C', verify: text(7) }], variants })]],
    sends: () => listed('script'),
  },
  'reruns of a case of 7 MB': {
    before: [
      [
        'evals.start',
        start({
          suite: { id: 's', name: 'S', prompt: text(0.5) },
          cases: [{ id: 'again', name: 'C', verify: text(6) }],
          variants: [{ model: 'm' }],
        }),
      ],
    ],
    sends: (_, [, batch = '']) => ['evals.rerunCell', { id: batch, cellKey: `again:${again?.id}` }],
  },
  'claims of one trial': {
    before: [['evals.start', start({})]],
    sends: (turn, [id = '']) => ['evals.claimTrial', { id, ordinal: 0, agent: `a${turn}`, seconds: 1 }],
  },
  'whoami with 190,000 values': { sends: () => ['auth.whoami', Array(100_000).fill(0)] },
  'names of 256 KB': { sends: () => ['evals.runs.list', { caseId: 'x'.repeat(250_000) }] },
};

async function send(
  pool: Pool,
  key: string,
  [operation, body]: Asked,
): Promise<{ status: number; text: string }> {
  const { statusCode, body: answer } = await pool.request({
    method: 'POST',
    path: `/v1/${operation}`,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });
  let start = '';
  for await (const chunk of answer) if (start.length < megabyte) start += chunk;
  return { status: statusCode, text: start };
}

/** The ids of the runs of a start, and of its batch. */
function idsOf(answer: string): string[] {
  const { runs = [], id = '' } = JSON.parse(answer);
  return [...runs.map((run: { id: string }) => run.id), id];
}

/** The processes do not wait for others of the machine: then their own waiting would be counted. */
function preferred(...pids: number[]): void {
  for (const pid of pids) {
    try {
      execFileSync('chrt', ['--rr', '-a', '-p', '1', `${pid}`], { stdio: 'ignore' });
    } catch {
      // Without the right to it, the numbers have the waiting of a busy machine.
    }
  }
}

function peakOf(pid: number): number {
  const [, kib = '0'] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kib) / 1024);
}
