import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  endedRuns,
  openServingPlace,
  runsOf,
  type Serving,
  type ServingPlace,
  startBatch,
  worker,
} from './serving-place.ts';

let at: ServingPlace;
let serving: Serving;
beforeAll(async () => {
  at = openServingPlace();
  at.place.write('script.yaml', 'turns: [{ run: echo hi > out.txt }, { text: done }]\notherwise: done\n');
  at.configure({ models: { scripted: { scripted: 'script.yaml' } } });
  serving = await at.serve();
});
afterAll(() => at[Symbol.asyncDispose]());

const validator = `import { validate } from 'offsite/validator';
import { readFileSync } from 'node:fs';
validate('greets', ({ workspace }) => {
  console.log('looked at out.txt');
  if (!readFileSync(workspace + '/out.txt', 'utf8').includes('hi')) throw new Error('no greeting');
});`;

test('trials of a batch that is started without local are run here and completed, with all of their record', async () => {
  const cases = [
    {
      id: 'greets',
      variables: { act: 'echo hi > out.txt', who: 'world' },
      prepare: { name: 'prepare', source: 'echo {{who}} > who.txt' },
      verify: 'grep hi out.txt\ngrep "$who" who.txt',
      validator: { name: 'check', source: validator, manifest: [{ index: 0, name: 'greets' }] },
    },
    { id: 'sulks', variables: { act: 'echo no > out.txt' }, verify: 'grep hi out.txt' },
  ];
  const started = await startBatch(serving, cases, { trials: 2 });

  const [greets, ...others] = await endedRuns(serving, 'greets');
  expect(others).toEqual([]);
  expect(greets).toMatchObject({
    id: started.runs[0]?.id,
    batchId: started.id,
    status: 'completed',
    local: false,
    profileVersion: expect.any(String),
    finishedAt: expect.any(String),
    distribution: { trials: 2, scored: 2, passed: 2, failed: 0, voided: 0, passRate: 1 },
  });
  expect(greets?.trials?.map(({ ordinal, status }) => [ordinal, status])).toEqual([
    [0, 'completed'],
    [1, 'completed'],
  ]);
  const [trial] = greets?.trials ?? [];
  expect(trial).toMatchObject({
    commands: 1,
    exitCode: 0,
    filesChanged: ['out.txt'],
    trajectory: [{ _tag: 'command', exitCode: 0 }],
    verifySteps: [
      { command: 'grep hi out.txt', exitCode: 0 },
      { command: 'grep "$who" who.txt', exitCode: 0 },
    ],
    validations: [{ name: 'greets', kind: 'code', status: 'passed' }],
  });
  expect(trial?.validations?.[0]?.logs?.[0]).toMatchObject({
    level: 'stdout',
    value: { text: expect.stringContaining('looked at out.txt'), format: 'text', state: 'captured' },
  });

  const [sulks] = await endedRuns(serving, 'sulks');
  expect(sulks).toMatchObject({ status: 'completed', distribution: { passed: 0, failed: 2, passRate: 0 } });
  expect(sulks?.trials?.map(({ status }) => status)).toEqual(['completed', 'completed']);
});

test('a rerun cell of a platform batch is run here too, and reported trials of the case stay out of its baseline', async () => {
  const again = { id: 'again', variables: { act: 'echo hi > out.txt' }, verify: 'grep hi out.txt' };
  const first = await startBatch(serving, [again]);
  const [run] = await endedRuns(serving, 'again');
  const variant = run?.variant?.id ?? '';

  // A batch that somebody else runs and reports, of the same case on the same variant.
  const local = await startBatch(serving, [again], { local: true });
  const trial = {
    caseName: 'again',
    ordinal: 0,
    taskIndex: 0,
    events: [],
    outcome: { passed: false, commandCount: 1 },
  };
  expect(await serving.ask('evals.reportTrial', { id: local.runs[0]?.id, trial })).toMatchObject({
    status: 200,
  });
  expect(await serving.ask('evals.reportTrial', { id: first.runs[0]?.id, trial })).toMatchObject({
    status: 409,
  });

  const cellKey = `again:${variant}`;
  const rerun = await serving.ask('evals.rerunCell', { id: first.id, cellKey, trials: 2 });
  expect(rerun.status, JSON.stringify(rerun.body)).toBe(200);
  const runs = await endedRuns(serving, 'again');
  expect(runs.map(({ local, trials }) => [local, trials?.map(({ status }) => status)])).toEqual([
    [false, ['completed', 'completed']],
    [true, ['reported']],
    [false, ['completed']],
  ]);
  const { body } = await serving.ask('evals.baseline', { caseId: 'again', variant });
  const { baselines } = body as { baselines: { runs: { batchId: string }[] }[] };
  expect(baselines).toMatchObject([{ distribution: { trials: 3, passed: 3, failed: 0 } }]);
  expect(baselines[0]?.runs.map(({ batchId }) => batchId)).toEqual([first.id, first.id]);

  // What ran here is in the ledger like any other batch.
  const shown = await at.command('show', first.id);
  expect(shown.stdout).toContain('run by the platform');
  const batches = JSON.parse((await at.command('data', 'batches', '--json')).stdout);
  expect(batches).toContainEqual(
    expect.objectContaining({ id: first.id, service: 'platform', passed: 3, left: 0 }),
  );
});

test('a model that the configuration has is asked through the gateway, and its use is in the record', async () => {
  const credentials = { ...worker.credentials, harnessConnectionId: 'bash' };
  await startBatch(serving, [{ id: 'asks', verify: 'grep hi out.txt' }], {
    variants: [{ model: 'scripted', credentials }],
  });
  const [run] = await endedRuns(serving, 'asks');
  expect(run?.trials?.[0]).toMatchObject({ status: 'completed', verifySteps: [{ exitCode: 0 }] });
  expect(run?.trials?.[0]?.usage?.totalTokens).toBeGreaterThan(0);
});

test('a trial that is in progress is shown as running', async () => {
  await startBatch(serving, [{ id: 'slow', variables: { act: 'sleep 5' }, verify: 'true' }]);
  const statuses = async () =>
    (await runsOf(serving, 'slow')).map(({ status, trials }) => [status, trials?.[0]?.status]);
  await expect.poll(statuses, { timeout: 120_000, interval: 100 }).toEqual([['running', 'running']]);
  await endedRuns(serving, 'slow');
  expect(await statuses()).toEqual([['completed', 'completed']]);
});
