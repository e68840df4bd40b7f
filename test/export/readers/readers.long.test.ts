import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { execa, execaSync } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ctrfJson } from '../../../src/cli/output/junit.ts';
import { harborForm } from '../../../src/export/harbor-job.ts';
import { inspectForm } from '../../../src/export/inspect-log.ts';
import { readInspectLogs } from '../../../src/export/read-inspect-log.ts';
import { csvForm, parquetForm } from '../../../src/export/trial-table.ts';
import { openExport, type TrialForm, type Write } from '../../../src/export/write-export.ts';
import { byPython, installed } from '../../gateway/real-servers/serve.ts';
import { needs } from '../../needs.ts';
import { exported } from '../exported-trials.ts';

/** Each format is read by the packages that it is for, as PyPI and npm have them. */

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'offsite-readers-'));
  mkdirSync(join(folder, 'logs'));
  await write('trials.csv', csvForm);
  await write('trials.parquet', parquetForm);
  await writeAll((open) => inspectForm((name) => open(`logs/${name}`)));
  await writeAll(() =>
    harborForm(async (path, text) => {
      const file = join(folder, 'jobs/job', path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }),
  );
});
afterAll(() => rmSync(folder, { recursive: true }));

const write = (name: string, form: (write: Write) => Promise<TrialForm>) =>
  writeAll(async (open) => form(await open(name)));

async function writeAll(form: (open: (name: string) => Promise<Write>) => TrialForm | Promise<TrialForm>) {
  const keep: (() => Promise<void>)[] = [];
  const opened = await form(async (name) => {
    const file = await openExport(join(folder, name));
    keep.push(() => file.keep());
    return file.write;
  });
  for (const trial of exported) await opened.add(trial);
  await opened.end();
  for (const each of keep) await each();
}

const here = import.meta.dirname;

/** Harbor wants Python 3.12. A version manager may have it without a name in the path. */
const newest = ['python3', 'python3.14', 'python3.13', 'python3.12', ...managedPythons()].find(
  (python) =>
    !execaSync(python, ['-c', 'import sys, venv; sys.exit(sys.version_info < (3, 12))'], { reject: false })
      .failed,
);

function managedPythons(): string[] {
  return globSync(join(homedir(), '.pyenv/versions/3.1[2-9]*/bin/python'));
}

/** What a function of `read.py` finds, with the packages of a list. */
async function read(what: string, { list = 'requirements.txt', python = 'python3' } = {}) {
  const requirements = join(here, list);
  const venv = await installed(`readers ${readFileSync(requirements)}`, async (to) => {
    await execa(python, ['-m', 'venv', to]);
    await execa(join(to, 'bin/pip'), ['install', '--quiet', '--no-compile', '--requirement', requirements]);
  });
  const { stdout } = await execa(join(venv, 'bin/python'), [join(here, 'read.py'), folder, what]);
  return JSON.parse(stdout.slice(stdout.lastIndexOf('\n') + 1));
}

byPython.test('pandas and DuckDB read the tables, and their sums agree with the trials', async () => {
  const tables = await read('tables');
  const sums = [2_100, 0.024_691_357_8];
  for (const form of ['csv', 'parquet'])
    expect(tables[form]).toEqual({
      rows: 4,
      pandas: sums,
      duckdb: [...sums, 2 / 3],
      started: '2026-03-12 14:14:00.007000+00:00',
    });
});

byPython.test('inspect_ai reads the logs', async () => {
  const [large, small] = await read('inspect');
  expect(large).toMatchObject({
    status: 'success',
    model: 'm-large',
    accuracy: 0.5,
    summaries: 2,
    reductions: [0.5, 0.4],
    samples: [
      {
        id: 'hello',
        epoch: 1,
        verdict: 'I',
        error: null,
        tokens: 1_058,
        seconds: 9.123,
        messages: ['user', 'assistant', 'assistant', 'tool', 'assistant', 'tool'],
        events: expect.arrayContaining(['span_begin', 'model', 'tool', 'sandbox', 'score']),
      },
      { epoch: 2, verdict: 'C' },
    ],
  });
  expect(small.samples).toMatchObject([
    { verdict: null, error: 'infrastructure, in sandbox: the engine went away' },
    { verdict: 'C' },
  ]);
});

test("CTRF is as its own package's schema wants it", async () => {
  const version = '0.3.0';
  const packages = await installed(`ctrf ${version}`, (to) =>
    execa('npm', ['install', '--no-audit', '--no-fund', '--prefix', to, `ctrf@${version}`]),
  );
  const { validate } = createRequire(join(packages, 'node_modules/'))('ctrf');
  const trial = { ordinal: 0, durationMs: 1_500.4, verdict: 'failed', failures: ['verify: no'] };
  const run = { case: 'a', variant: 'b', failed: 1, void: 0, durationMs: 1_500, trials: [trial] };
  const batch = { batchId: 'b1', passed: 0, failed: 1, void: 0, startedAt: 1, finishedAt: 2, runs: [run] };
  expect(validate(JSON.parse(ctrfJson(batch, { now: 3 })))).toMatchObject({ valid: true });
});

byPython.test('a log that inspect_ai itself wrote is read with the same verdicts and tokens', async () => {
  const samples = await read('made');
  const made = join(folder, 'made');
  const log = await readInspectLogs(readdirSync(made).map((name) => join(made, name)));
  const trials = await Array.fromAsync(log.trials);
  expect(log.suite).toBe('sums');
  const found = trials.map(({ caseId, ordinal, result: { verdict, models } }) => {
    return { case: caseId, ordinal, verdict, tokens: models?.usage[0]?.usage.totalTokens };
  });
  const sorted = (list: { case: string; ordinal: number }[]) =>
    list.toSorted((one, other) =>
      `${one.case} ${one.ordinal}`.localeCompare(`${other.case} ${other.ordinal}`),
    );
  expect(sorted(found)).toEqual(sorted(samples));
  expect(new Set(trials.map(({ result }) => result.verdict))).toEqual(new Set(['passed', 'failed']));
  expect(trials[0]?.result.events).toMatchObject([
    { kind: 'message', text: expect.stringMatching(/^[24]$/) },
  ]);
});

needs(newest !== undefined, 'Python 3.12').test(
  'Harbor lists the job, and its models read each file',
  async () => {
    const job = await read('harbor', { list: 'harbor.txt', python: newest ?? '' });
    expect(job).toMatchObject({ agents: 2, total: 4 });
    expect(job.trials).toMatchObject([
      {
        name: 'hello__large-0',
        agent: 'codex',
        rewards: { reward: 0 },
        valid: true,
        error: null,
        totals: [1_000, 600, 50, 0.012_345_678_9],
        prompt_tokens: 1_000,
        steps: [
          ['user', false],
          ['agent', false],
          ['agent', true],
          ['agent', true],
          ['system', false],
        ],
      },
      { rewards: { reward: 1 } },
      { rewards: null, valid: false, error: 'infrastructure' },
      { rewards: { reward: 1 }, valid: true, error: 'AgentTimeoutError' },
    ]);
  },
);
