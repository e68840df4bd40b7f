import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BaselineResponse } from '../../src/contract/catalog.ts';
import { RunsResponse } from '../../src/contract/record.ts';
import { TrialRecord } from '../../src/record/trial-record.ts';
import { valuesOf } from '../contract/arbitrary.ts';
import { runs } from '../short-tests.ts';
import { fullRecord, testPlatform, trialRecord } from './test-platform.ts';
import { onlyRun, openTestService, report, startRequest, temporaryFolder } from './test-service.ts';

const credentials = { harnessConnectionId: 'command', sandboxConnectionId: 'local' };
const onPlatform = (change: Record<string, unknown> = {}) =>
  startRequest({ local: undefined, variants: [{ model: 'small', credentials }], ...change });

test('a batch without local is queued for the platform, with everything that is needed to run it', async () => {
  const platform = testPlatform();
  await using service = openTestService(undefined, platform);
  const cases = [
    { id: 'csv', name: 'CSV', verify: 'check {{file}}', variables: { file: 'a.csv' }, tags: ['x'] },
  ];
  const suite = { id: 'parsers', name: 'Parsers', prompt: 'Mend {{file}}.' };
  const request = onPlatform({ cases, suite });
  const { id, runs } = await service.succeed('evals.start', request);
  expect(platform.asked).toEqual([JSON.parse(JSON.stringify(request))]);
  expect(platform.notified).toBe(1);
  const { local, status, variant } = await onlyRun(service);
  expect({ local, status }).toEqual({ local: false, status: 'queued' });
  expect(service.service.platform.openRuns()).toEqual([
    {
      id: runs[0]?.id,
      batchId: id,
      taskIndex: 0,
      suite,
      case: cases[0],
      variant,
      trials: 2,
      ended: [],
      setup: { prompt: 'Mend a.csv.', verify: 'check a.csv' },
    },
  ]);
});

test('a local batch is nothing of the platform', async () => {
  const platform = testPlatform({ status: 409, message: 'no engine' });
  await using service = openTestService(undefined, platform);
  const { runs } = await service.succeed('evals.start', startRequest());
  expect(service.service.platform.openRuns()).toEqual([]);
  expect(platform).toMatchObject({ asked: [], notified: 0 });
  const complete = service.service.platform.complete(runs[0]?.id ?? '', 0, trialRecord());
  await expect(complete).rejects.toMatchObject({ code: 'RUN_UNKNOWN' });
});

test.for([
  [undefined, 409, 'local: true'],
  [{ status: 409, message: 'The engine does not answer.' }, 409, 'The engine does not answer.'],
  [{ status: 404, message: 'There is no model small.' }, 404, 'There is no model small.'],
] as const)(
  'a platform batch that cannot run is refused with the reason: %j',
  async ([refusal, status, message]) => {
    await using service = openTestService(undefined, refusal && testPlatform(refusal));
    for (const local of [undefined, false]) {
      const answer = await service.ask('evals.start', onPlatform({ local }));
      expect(answer).toMatchObject({ status, body: { message: expect.stringContaining(message) } });
    }
    expect(service.service.platform.openRuns()).toEqual([]);
    expect(await service.succeed('evals.cases.list', {})).toEqual({ cases: [] });
  },
);

test('a request that is wrong is refused before the platform is asked', async () => {
  const platform = testPlatform({ status: 409, message: 'no engine' });
  await using service = openTestService(undefined, platform);
  const twice = onPlatform({ cases: [1, 2].map(() => ({ id: 'csv', name: 'CSV' })) });
  expect(await service.issues('evals.start', twice)).toHaveLength(1);
  expect(platform.asked).toEqual([]);
});

test('a completed trial is recorded once, and its run ends with its last trial', async () => {
  await using service = openTestService(undefined, testPlatform());
  const { platform } = service.service;
  const run = (await service.succeed('evals.start', onPlatform())).runs[0]?.id ?? '';
  expect(await platform.complete(run, 1, fullRecord())).toBe('recorded');
  expect(platform.openRuns()).toMatchObject([{ id: run, ended: [1] }]);
  const recorded = await onlyRun(service);
  expect(recorded).toMatchObject({
    status: 'running',
    trials: [{ status: 'queued' }, { status: 'completed' }],
  });
  expect(await platform.complete(run, 1, trialRecord({ verdict: 'void' }))).toBe('already');
  expect(await onlyRun(service)).toEqual(recorded);

  service.clock.advance(60_000);
  const both = [platform.complete(run, 0, trialRecord()), platform.complete(run, 0, trialRecord())];
  expect(await Promise.all(both)).toEqual(['recorded', 'already']);
  expect(platform.openRuns()).toEqual([]);
  expect(await onlyRun(service)).toMatchObject({
    status: 'completed',
    finishedAt: '2026-03-01T12:01:00.000Z',
    distribution: { scored: 2, passed: 1, failed: 1 },
  });
  for (const [id, ordinal] of [
    [run, 2],
    [run, -1],
    [run, 0.5],
    ['run_none', 0],
  ] as const) {
    await expect(platform.complete(id, ordinal, trialRecord())).rejects.toMatchObject({
      code: 'RUN_UNKNOWN',
    });
  }
});

test('a trial that is in progress is running, and so is its run', async () => {
  await using service = openTestService(undefined, testPlatform());
  const { platform } = service.service;
  const run = (await service.succeed('evals.start', onPlatform())).runs[0]?.id ?? '';
  const statuses = async () => {
    const { status, trials = [] } = await onlyRun(service);
    return [status, ...trials.map((trial) => trial.status)];
  };
  platform.show(run, 0, 'running');
  expect(await statuses()).toEqual(['running', 'running', 'queued']);
  platform.show(run, 0, 'queued');
  expect(await statuses()).toEqual(['queued', 'queued', 'queued']);
  platform.show(run, 1, 'running');
  await platform.complete(run, 1, trialRecord());
  expect(await statuses()).toEqual(['running', 'queued', 'completed']);
});

test('a stored record of a completed trial has every field of the specification', async () => {
  await using service = openTestService(undefined, testPlatform());
  const run = (await service.succeed('evals.start', onPlatform({ trials: 1 }))).runs[0]?.id ?? '';
  const result = fullRecord();
  await service.service.platform.complete(run, 0, result);
  const estimated = { classification: 'estimated', source: 'gateway' };
  const tokens = { inputTokens: 900, outputTokens: 100, totalTokens: 1000 };
  const [validation] = result.validations ?? [];
  const [judgment, alone] = result.judgments ?? [];
  expect(await onlyRun(service)).toMatchObject({
    harnessVersion: '2.1.0',
    profileVersion: '0123456789ab',
    costs: {
      estimatedEquivalentUsd: 0.75,
      incomplete: true,
      components: [
        { ...estimated, component: 'agent', usd: 0.5, detail: { model: 'small', trials: 1 } },
        { ...estimated, component: 'judge', usd: 0.25, detail: { model: 'large', trials: 1 } },
      ],
    },
    distribution: { trials: 1, scored: 1, failed: 1, commandMedian: 2 },
    trials: [
      {
        id: expect.stringMatching(/^trial_/),
        ordinal: 0,
        status: 'completed',
        sandboxId: 'sandbox-1',
        commands: 2,
        failedCommands: 1,
        exitCode: 0,
        modelMs: 250,
        sandboxMs: 400,
        timed: true,
        filesChanged: ['parse.js'],
        artifacts: result.artifacts,
        costs: {
          estimatedEquivalentUsd: 0.75,
          // The prices of the user's model are not known.
          incomplete: true,
          components: [
            {
              ...estimated,
              component: 'agent',
              usd: 0.5,
              explanation: 'tokens times the prices of 2026-01-01',
              detail: { model: 'small', requests: 3, ...tokens, cacheReadTokens: 300, cacheWriteTokens: 0 },
            },
            {
              ...estimated,
              component: 'judge',
              usd: 0.25,
              detail: { model: 'large', answeredBy: 'large-2', requests: 1, ...tokens },
            },
          ],
        },
        usage: { ...tokens, cacheReadTokens: 300, cacheWriteTokens: 0, costUsd: 0.5 },
        trajectory: result.trajectory,
        validations: [
          { ...validation, judgment },
          {
            id: 'judgment-1',
            index: 1,
            name: 'is short',
            kind: 'judgment',
            status: 'passed',
            judgment: alone,
          },
        ],
        verifySteps: [{ command: 'npm test', exitCode: 1 }],
        voidFields: [],
      },
    ],
  });
});

test('what was not measured is left out, and named', async () => {
  await using service = openTestService(undefined, testPlatform());
  const run = (await service.succeed('evals.start', onPlatform({ trials: 1 }))).runs[0]?.id ?? '';
  const cause = { kind: 'infrastructure' as const, phase: 'sandbox' as const, message: 'no disk' };
  await service.service.platform.complete(
    run,
    0,
    trialRecord({ verdict: 'void', cause, modelUnmeasured: true }),
  );
  const { trials, ...record } = await onlyRun(service);
  expect(record).toMatchObject({ status: 'completed', distribution: { scored: 0, voided: 1 } });
  for (const field of ['costs', 'harnessVersion', 'profileVersion']) expect(record).not.toHaveProperty(field);
  expect(trials).toEqual([
    {
      id: expect.any(String),
      ordinal: 0,
      status: 'voided',
      timed: false,
      trajectory: [],
      validations: [],
      voidFields: expect.arrayContaining(['passed', 'commandCount', 'modelMs', 'usage']),
    },
  ]);
});

test('a platform cell is run again by the platform, and only if it can', async () => {
  const folder = temporaryFolder();
  const platform = testPlatform();
  await using service = openTestService(folder, platform);
  const { id } = await service.succeed('evals.start', onPlatform());
  const cellKey = `csv:${(await onlyRun(service)).variant?.id}`;
  const rerun = await service.succeed('evals.rerunCell', { id, cellKey, trials: 3 });
  expect(platform.notified).toBe(2);
  const cell = { ...onPlatform({ trials: 3 }), rerunOf: id };
  expect(platform.asked[1]).toEqual(JSON.parse(JSON.stringify(cell)));
  expect(service.service.platform.openRuns().map((run) => [run.id, run.taskIndex, run.trials])).toEqual([
    [expect.any(String), 0, 2],
    [rerun.id, 1, 3],
  ]);
  const refusing = openTestService(folder, testPlatform({ status: 409, message: 'no engine' }));
  const alone = openTestService(folder);
  for (const [other, message] of [
    [refusing, 'no engine'],
    [alone, 'local: true'],
  ] as const) {
    const answer = await other.ask('evals.rerunCell', { id, cellKey }, service.key);
    expect(answer).toMatchObject({ status: 409, body: { message: expect.stringContaining(message) } });
    await other.service.close();
  }
  expect(service.service.platform.openRuns()).toHaveLength(2);
});

test('nobody reports a trial of the platform', async () => {
  await using service = openTestService(undefined, testPlatform());
  const { runs } = await service.succeed('evals.start', onPlatform());
  expect(await service.ask('evals.reportTrial', report(runs[0]?.id))).toMatchObject({
    status: 409,
    body: { message: expect.stringContaining('not started for local execution') },
  });
});

test('a service that is opened again has the same records and the same open runs', async () => {
  const folder = temporaryFolder();
  const first = openTestService(folder, testPlatform());
  const variants = ['small', 'large'].map((model) => ({ model, credentials }));
  const { runs } = await first.succeed('evals.start', onPlatform({ variants }));
  const [one = '', other = ''] = runs.map(({ id }) => id);
  await first.service.platform.complete(one, 0, fullRecord());
  await first.service.platform.complete(one, 1, fullRecord());
  await first.service.platform.complete(other, 1, fullRecord());
  const recorded = await first.succeed('evals.runs.list', { caseId: 'csv' });
  // Their texts are read while the service is open.
  const open = first.service.platform.openRuns().map((run) => ({ ...run }));
  await first.service.close();

  await using again = openTestService(folder, testPlatform());
  expect(await again.succeed('evals.runs.list', { caseId: 'csv' }, first.key)).toEqual(recorded);
  expect(again.service.platform.openRuns()).toEqual(open);
  expect(open).toMatchObject([{ id: other, ended: [1] }]);
  expect(again.service.platform.openRuns(new Set([other]))).toEqual([]);
  expect(await again.service.platform.complete(one, 0, trialRecord())).toBe('already');
});

test('whatever a trial found, its record is one that the contract allows', async () => {
  await using service = openTestService(undefined, testPlatform());
  await fc.assert(
    fc.asyncProperty(valuesOf(TrialRecord), async (value) => {
      const result = TrialRecord.parse(value);
      const cases = [{ id: 'any', name: 'Any' }];
      const { runs } = await service.succeed('evals.start', onPlatform({ cases, trials: 1 }));
      await service.service.platform.complete(runs[0]?.id ?? '', 0, result);
      const listed = RunsResponse.parse(await service.succeed('evals.runs.list', { caseId: 'any' }));
      const [run] = listed.runs;
      const [trial] = run?.trials ?? [];
      expect(run).toMatchObject({ id: runs[0]?.id, status: 'completed' });
      expect(trial?.status).toBe(result.verdict === 'void' ? 'voided' : 'completed');
      expect(trial?.filesChanged).toEqual(result.filesChanged);
      expect(trial?.artifacts).toEqual(result.artifacts);
      for (const [index, { judgment, ...validation }] of (result.validations ?? []).entries()) {
        expect(trial?.validations?.[index]).toMatchObject(validation);
      }
      BaselineResponse.parse(await service.succeed('evals.baseline', { caseId: 'any' }));
    }),
    { numRuns: runs(100) },
  );
});

test('queued runs take no memory for the texts that their variables stand for', async () => {
  await using service = openTestService(undefined, testPlatform());
  const text = '{{a}}'.repeat(1000);
  const cases = Array.from({ length: 24 }, (_, index) => ({
    id: `case ${index}`,
    name: 'long',
    prepare: { name: 'p', source: text },
    verify: text,
    validator: { name: 'v', source: text },
    variables: { a: `${index}`.padEnd(16_700, 'x') },
  }));
  await service.succeed('evals.start', onPlatform({ cases, suite: { id: 's', name: 'S', prompt: text } }));
  const before = process.memoryUsage().heapUsed;
  const open = service.service.platform.openRuns();
  expect(open).toHaveLength(24);
  expect(open[7]?.setup.verify).toHaveLength(16_700_000);
  // 24 times 64 MiB are 1.6 GB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(600 * 1024 * 1024);
});
