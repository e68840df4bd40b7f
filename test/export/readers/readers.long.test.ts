import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ctrfJson } from '../../../src/cli/output/ctrf.ts';
import { inspectForm } from '../../../src/export/inspect-log.ts';
import { csvForm, parquetForm } from '../../../src/export/trial-table.ts';
import { openExport, type TrialForm, type Write } from '../../../src/export/write-export.ts';
import { byPython, installed } from '../../gateway/real-servers/serve.ts';
import { exported } from '../exported-trials.ts';

/** Each format is read by the packages that it is for, as PyPI and npm have them. */

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'offsite-readers-'));
  mkdirSync(join(folder, 'logs'));
  await write('trials.csv', csvForm);
  await write('trials.parquet', parquetForm);
  await writeAll((open) => inspectForm((name) => open(`logs/${name}`)));
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

/** What a function of `read.py` finds. */
async function read(what: string) {
  const requirements = join(here, 'requirements.txt');
  const venv = await installed(
    `readers ${await execa('cat', [requirements]).then(({ stdout }) => stdout)}`,
    async (to) => {
      await execa('python3', ['-m', 'venv', to]);
      await execa(join(to, 'bin/pip'), ['install', '--quiet', '--no-compile', '--requirement', requirements]);
    },
  );
  const { stdout } = await execa(join(venv, 'bin/python'), [join(here, 'read.py'), folder, what]);
  return JSON.parse(stdout);
}

byPython.test('pandas and DuckDB read the tables, and their sums agree with the trials', async () => {
  const tables = await read('tables');
  const sums = [2_100, 0.024_691_357_8];
  for (const form of ['csv', 'parquet'])
    expect(tables[form]).toEqual({
      ...{ rows: 4, pandas: sums, duckdb: [...sums, 2 / 3] },
      started: '2026-03-12 14:14:00.007000+00:00',
    });
});

byPython.test('inspect_ai reads the logs', async () => {
  const [large, small] = await read('inspect');
  expect(large).toMatchObject({
    ...{ status: 'success', model: 'm-large', accuracy: 0.5, summaries: 2, reductions: [0.5, 0.4] },
    samples: [
      {
        ...{ id: 'hello', epoch: 1, verdict: 'I', error: null, tokens: 1_058, seconds: 9.123 },
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
