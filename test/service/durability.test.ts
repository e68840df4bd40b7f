import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { OffsiteError } from '../../src/base/offsite-error.ts';
import { openDatabase } from '../../src/ledger/database.ts';
import { openService } from '../../src/service/service.ts';
import { migrations } from '../../src/service/store/migrations.ts';
import { type ServiceProcess, startServiceProcess } from './service-process.ts';
import {
  folderForTest,
  onlyRun,
  openTestService,
  report,
  startRequest,
  startRun,
  stillClock,
} from './test-service.ts';

const key = 'a-key-for-durability';

async function startRuns(service: ServiceProcess, count: number): Promise<string[]> {
  const variants = Array.from({ length: count }, (_, index) => ({ model: `m${index}` }));
  const { body } = await service.post('evals.start', startRequest({ variants, trials: 10 }));
  return (body as { runs: { id: string }[] }).runs.map(({ id }) => id);
}

test('what was stored is there after the service is opened again', async () => {
  using folder = folderForTest();
  const first = openTestService(folder.path);
  const run = await startRun(first);
  await first.succeed('evals.reportTrial', report(run));
  const recorded = await onlyRun(first);
  await first.service.close();
  const again = openTestService(folder.path);
  expect(await onlyRun(again)).toEqual(recorded);
  await again.service.close();
});

test('the runs of a database of the first version have their setups after it is migrated', async () => {
  using folder = folderForTest();
  {
    using database = openDatabase(join(folder.path, 'service.db'), migrations.slice(0, 1));
    const definition = { id: 'csv', name: 'CSV', verify: 'check {{n}}', variables: { n: 7 } };
    const text = (value: unknown) => `'${JSON.stringify(value)}'`;
    database.exec(`
      INSERT INTO organizations VALUES (1, 'org_1', 'Acme', 'acme', 0);
      INSERT INTO batches VALUES (1, 'batch_1', 1, ${text(startRequest().suite)},
        ${text({ id: 'parsers', name: 'Parsers' })}, 1, 1, NULL, 0);
      INSERT INTO batch_cases VALUES (1, 1, ${text({ id: 'csv', name: 'CSV' })}, ${text(definition)},
        ${text({ prompt: 'Mend the parser.', verify: 'check 7' })});
      INSERT INTO runs VALUES (1, 'run_1', 1, 1, 1, 0, 'csv', 'v_1', 'm', '{"id":"v_1","model":"m"}', 'h', 1, 1, 0);
      INSERT INTO run_totals VALUES (1, 'csv', 'all', '', 1);
    `);
  }
  const service = openTestService(folder.path);
  expect((await onlyRun(service)).setup).toEqual({ prompt: 'Mend the parser.', verify: 'check 7' });
  await service.service.close();
});

test('a database without lists of runs gets them when it is migrated, and they go on', async () => {
  using folder = folderForTest();
  {
    using database = openDatabase(join(folder.path, 'service.db'), migrations.slice(0, 4));
    database.exec(`
      INSERT INTO organizations VALUES (1, 'org_1', 'Acme', 'acme', 0);
      INSERT INTO batches VALUES (1, 'batch_1', 1, '${JSON.stringify(startRequest().suite)}', '{}', 1, 1, NULL, 0);
      INSERT INTO batch_cases VALUES (1, 1, '{"id":"csv","name":"CSV"}', '{"id":"csv","name":"CSV"}');
    `);
    const insert = database.prepare(
      `INSERT INTO runs (id, organization, batch, batch_case, task_index, case_id, variant_id, model, variant,
         definition_hash, local, trials, started_at) VALUES (?, 1, 1, 1, ?, ?, ?, ?, '{}', 'h', 1, 1, 0)`,
    );
    const runs = [
      ['csv', 'v_1', 'small'],
      ['csv', 'v_2', 'large'],
      ['other', 'v_1', 'small'],
      ['csv', 'v_3', 'small'],
    ] as const;
    for (const [index, run] of runs.entries()) insert.run(`run_${index}`, index, ...run);
  }
  await using service = openTestService(folder.path);
  const added = await startRun(service, { variants: [{ model: 'small' }] });
  const listed = async (caseId: string, variant?: string) => {
    const { runs, total } = await service.succeed('evals.runs.list', { caseId, variant });
    expect(total).toBe(runs.length);
    return runs.map(({ id }) => id);
  };
  expect(await listed('csv')).toEqual([added, 'run_3', 'run_1', 'run_0']);
  expect(await listed('csv', 'small')).toEqual([added, 'run_3', 'run_0']);
  expect(await listed('csv', 'v_2')).toEqual(['run_1']);
  expect(await listed('other')).toEqual(['run_2']);
});

test('a report that was answered survives the service being killed at once', async () => {
  using folder = folderForTest();
  const answered: unknown[] = [];
  await using victim = await startServiceProcess(folder.path, key);
  const runs = await startRuns(victim, 10);
  const reports = runs.flatMap((id) => Array.from({ length: 10 }, (_, ordinal) => report(id, ordinal)));
  const sent = reports.map(async (one) => {
    const { status } = await victim.post('evals.reportTrial', one);
    if (status !== 200) throw new Error(`answered ${status}`);
    answered.push(one);
    if (answered.length === 20) await victim.kill();
  });
  await Promise.allSettled(sent);
  expect(answered.length).toBeGreaterThanOrEqual(20);

  await using survivor = openTestService(folder.path);
  survivor.service.seedKey(key, { organization: 'Local', permissions: [] });
  const { runs: recorded } = await survivor.succeed('evals.runs.list', { caseId: 'csv' }, key);
  const stored = new Set(
    recorded.flatMap((run) =>
      (run.trials ?? [])
        .filter(({ status }) => status === 'reported')
        .map((trial) => `${run.id} ${trial.ordinal}`),
    ),
  );
  for (const one of answered as ReturnType<typeof report>[]) {
    expect(stored).toContain(`${one.id} ${one.trial.ordinal}`);
  }
  // And every report can be sent again, whether it had been answered or not.
  for (const one of reports) await survivor.succeed('evals.reportTrial', one, key);
  const { runs: complete } = await survivor.succeed('evals.runs.list', { caseId: 'csv' }, key);
  expect(complete.map(({ status }) => status)).toEqual(Array(10).fill('completed'));
});

test('several processes share one new data folder, and a trial reported to all is accepted once', async () => {
  using folder = folderForTest();
  const opened = await Promise.all([0, 1, 2].map(() => startServiceProcess(folder.path, key)));
  try {
    const [first] = opened;
    if (!first) throw new Error('no process');
    const runs = await startRuns(first, 3);
    const answers = await Promise.all(
      runs.flatMap((id) =>
        Array.from({ length: 10 }, (_, ordinal) =>
          Promise.all(
            opened.map((process, index) =>
              process.post('evals.reportTrial', report(id, ordinal, { exitCode: index })),
            ),
          ),
        ),
      ),
    );
    for (const statuses of answers.map((of) => of.map(({ status }) => status).sort())) {
      expect(statuses).toEqual([200, 409, 409]);
    }
  } finally {
    for (const process of opened) await process.kill();
  }
});

test('when the disk is full a report is refused, not lost silently, and taken once there is room', async () => {
  using folder = folderForTest();
  const output = 'x'.repeat(300_000);
  const large = (id: string | undefined, ordinal: number) =>
    report(id, ordinal, { passed: true }, { events: [{ _tag: 'command', command: 'cat', output }] });
  let run: string | undefined;
  const statuses: number[] = [];
  {
    await using full = await startServiceProcess(folder.path, key, { fileBlocks: 1500 });
    [run] = await startRuns(full, 1);
    for (let ordinal = 0; ordinal < 10; ordinal++) {
      statuses.push((await full.post('evals.reportTrial', large(run, ordinal))).status);
    }
    // It still answers.
    expect((await full.post('auth.whoami', {})).status).toBe(200);
  }
  expect(statuses[0]).toBe(200);
  expect(statuses.at(-1)).toBe(500);

  await using roomy = openTestService(folder.path);
  const listed = async () => (await roomy.succeed('evals.runs.list', { caseId: 'csv' }, key)).runs[0];
  expect((await listed())?.trials?.map(({ status }) => (status === 'reported' ? 200 : 500))).toEqual(
    statuses,
  );
  for (let ordinal = 0; ordinal < 10; ordinal++) {
    await roomy.succeed('evals.reportTrial', large(run, ordinal), key);
  }
  expect((await listed())?.status).toBe('completed');
});

test('a database of a newer version is refused and left as it is', async () => {
  using folder = folderForTest();
  await openTestService(folder.path).service.close();
  const file = join(folder.path, 'service.db');
  {
    using database = new DatabaseSync(file);
    database.exec('PRAGMA user_version = 1000');
  }
  expect(openingOf(folder.path)).toMatchObject({ code: 'DATABASE_NEWER', hint: expect.any(String) });
  using database = new DatabaseSync(file);
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: 1000 });
});

test('a file that is no database is refused and left as it is', async () => {
  using folder = folderForTest();
  const content = 'this is a letter, not a database. '.repeat(100);
  writeFileSync(join(folder.path, 'service.db'), content);
  expect(openingOf(folder.path)).toMatchObject({ code: 'DATABASE_DAMAGED' });
  expect(readdirSync(folder.path)).toEqual(['service.db']);
});

function openingOf(dataFolder: string): OffsiteError {
  try {
    void openService({ dataFolder, clock: stillClock(), integrations: [] }).close();
  } catch (error) {
    if (error instanceof OffsiteError) return error;
    throw error;
  }
  throw new Error('it was opened');
}
