import { expect, test } from 'vitest';
import { onlyRun, openTestService, report, startRequest, startRun } from './test-service.ts';

test('a run is running with its first report and completed with its last', async () => {
  await using service = openTestService();
  const run = await startRun(service);
  service.clock.advance(60_000);
  await service.succeed('evals.reportTrial', report(run, 1));
  expect(await onlyRun(service)).toMatchObject({
    status: 'running',
    trials: [{ status: 'queued' }, { status: 'reported' }],
  });
  expect(await onlyRun(service)).not.toHaveProperty('finishedAt');
  service.clock.advance(60_000);
  await service.succeed('evals.reportTrial', report(run, 0, { passed: false }));
  expect(await onlyRun(service)).toMatchObject({
    status: 'completed',
    startedAt: '2026-03-01T12:00:00.000Z',
    finishedAt: '2026-03-01T12:02:00.000Z',
    distribution: {
      trials: 2,
      scored: 2,
      passed: 1,
      failed: 1,
      voided: 0,
      passRate: 0.5,
      deterministic: false,
    },
  });
});

test('the same report again succeeds and changes nothing, whatever the order of its fields', async () => {
  await using service = openTestService();
  const run = await startRun(service);
  const events = [{ _tag: 'Thought', text: 't', tokens: 3 }];
  await service.succeed('evals.reportTrial', report(run, 0, { passed: true, exitCode: 0 }, { events }));
  const recorded = await onlyRun(service);
  service.clock.advance(1000);
  const again = report(
    run,
    0,
    { exitCode: 0, passed: true },
    { events: [{ tokens: 3, text: 't', _tag: 'Thought' }] },
  );
  await service.succeed('evals.reportTrial', again);
  expect(await onlyRun(service)).toEqual(recorded);
});

for (const [what, outcome, change] of [
  ['verdict', { passed: false }, {}],
  ['exit code', { passed: true, exitCode: 1 }, {}],
  ['sandbox', { passed: true }, { sandboxId: 'other' }],
  ['task index', { passed: true }, { taskIndex: 1 }],
  ['usage', { passed: true }, { usage: { inputTokens: 1 } }],
  ['event', { passed: true }, { events: [] }],
  ['unknown event', { passed: true }, { events: [{ _tag: 'Thought' }] }],
] as const) {
  test(`a report with another ${what} is a conflict, and what was recorded stays`, async () => {
    await using service = openTestService();
    const run = await startRun(service);
    await service.succeed('evals.reportTrial', report(run, 0, { passed: true }));
    const recorded = await onlyRun(service);
    expect(await service.ask('evals.reportTrial', report(run, 0, outcome, change))).toMatchObject({
      status: 409,
      body: { _tag: 'Conflict' },
    });
    expect(await onlyRun(service)).toEqual(recorded);
  });
}

test('many reports of one trial at once are accepted once', async () => {
  await using service = openTestService();
  const run = await startRun(service);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      service.ask('evals.reportTrial', report(run, 0, { passed: index % 2 === 0 })),
    ),
  );
  // The first one wins: its ten copies succeed, the ten others conflict.
  expect(answers.map(({ status }) => status)).toEqual(
    Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? 200 : 409)),
  );
  expect((await onlyRun(service)).distribution).toMatchObject({ passed: 1, failed: 0 });
});

test('with the id of the batch, the task index says which run', async () => {
  await using service = openTestService();
  const cases = ['CSV', 'TOML'].map((name) => ({ id: name.toLowerCase(), name }));
  const { id } = await service.succeed('evals.start', startRequest({ cases }));
  const change = { caseName: 'TOML', taskIndex: 1 };
  await service.succeed('evals.reportTrial', report(id, 0, { passed: true }, change));
  expect((await onlyRun(service, 'toml')).status).toBe('running');
  expect((await onlyRun(service, 'csv')).status).toBe('queued');
  const missing = report(id, 0, { passed: true }, { caseName: 'TOML', taskIndex: 2 });
  expect((await service.ask('evals.reportTrial', missing)).status).toBe(404);
});

test('a report for another case than the run is of is a conflict', async () => {
  await using service = openTestService();
  const run = await startRun(service);
  const other = report(run, 0, { passed: true }, { caseName: 'TOML' });
  expect(await service.ask('evals.reportTrial', other)).toMatchObject({ status: 409 });
  await service.succeed('evals.reportTrial', report(run, 0, { passed: true }, { caseName: 'csv' }));
});

test('a trial that the run does not have is not found', async () => {
  await using service = openTestService();
  const run = await startRun(service);
  expect(await service.ask('evals.reportTrial', report(run, 2))).toMatchObject({
    status: 404,
    body: { _tag: 'NotFound', message: expect.stringContaining('it has 2') },
  });
  expect((await service.ask('evals.reportTrial', report('run_none'))).status).toBe(404);
});

for (const [what, outcome] of [
  ['whose verdict is among the void fields', { passed: false, voidFields: ['passed', 'exitCode'] }],
  ['without a verdict', { exitCode: 1 }],
] as const) {
  test(`a trial ${what} is voided, and not counted as failed`, async () => {
    await using service = openTestService();
    const run = await startRun(service);
    await service.succeed('evals.reportTrial', report(run, 0, outcome));
    const { trials, distribution } = await onlyRun(service);
    expect(trials?.[0]?.status).toBe('voided');
    expect(distribution).toEqual({ trials: 2, scored: 0, passed: 0, failed: 0, voided: 1 });
  });
}

test('what a trial did and measured is in its record', async () => {
  await using service = openTestService();
  const run = await startRun(service, { trials: 1 });
  const command = (text: string, exitCode?: number) => ({
    _tag: 'command',
    command: text,
    ...(exitCode !== undefined && { exitCode }),
    startedAtMillis: 1,
    finishedAtMillis: 2,
    output: 'out\0\ud800',
    outputTruncated: true,
  });
  const trajectory = [command('ls', 0), command('false', 1), command('cut off')];
  const outcome = {
    commandCount: 3,
    exitCode: 0,
    modelMs: 10,
    sandboxMs: 20,
    passed: true,
    verifySteps: [{ command: 'npm test', exitCode: 0 }],
    artifacts: [{ path: 'a.txt', byteSize: 1, sha256: 'f'.repeat(64) }],
  };
  const usage = { inputTokens: 5, costUsd: 0.25 };
  const started = { _tag: 'Started', model: 'small', sessionId: 's', at: 1 };
  await service.succeed(
    'evals.reportTrial',
    report(run, 0, outcome, { sandboxId: 'box', usage, events: [started, ...trajectory] }),
  );
  const cost = { estimatedEquivalentUsd: 0.25, incomplete: false };
  const recorded = await onlyRun(service);
  expect(recorded.costs).toMatchObject(cost);
  expect(recorded.trials).toEqual([
    {
      id: expect.any(String),
      ordinal: 0,
      status: 'reported',
      sandboxId: 'box',
      commands: 3,
      failedCommands: 1,
      exitCode: 0,
      modelMs: 10,
      sandboxMs: 20,
      timed: true,
      artifacts: outcome.artifacts,
      verifySteps: outcome.verifySteps,
      usage,
      trajectory,
      validations: [],
      costs: expect.objectContaining(cost),
    },
  ]);
});

test('a time that does not hold makes a trial untimed', async () => {
  await using service = openTestService();
  const run = await startRun(service, { trials: 3 });
  const times = { passed: true, modelMs: 1, sandboxMs: 1 };
  await service.succeed('evals.reportTrial', report(run, 0, times));
  await service.succeed('evals.reportTrial', report(run, 1, { ...times, voidFields: ['modelMs'] }));
  await service.succeed('evals.reportTrial', report(run, 2, { passed: true, modelMs: 1 }));
  const { trials } = await onlyRun(service);
  expect(trials?.map(({ timed }) => timed)).toEqual([true, false, false]);
});

test('validations are recorded with their status and judgments with the validation of their name', async () => {
  await using service = openTestService();
  const run = await startRun(service, { trials: 1 });
  const text = { text: 'seen', truncated: false };
  const validation = (index: number, exitCode?: number) => ({
    id: `v${index}`,
    index,
    name: `check ${index}`,
    ...(exitCode !== undefined && { exitCode }),
    output: text,
    logs: [{ index: 0, at: 1, value: text }],
    calls: [{ index: 0, startedAt: 1, durationMs: 2, input: text }],
  });
  const judgments = [
    { name: 'check 0', score: 0.9, threshold: 0.5 },
    { name: 'tone', score: 0.2, threshold: 0.5 },
    { name: 'style', choice: 'plain' },
    { name: 'depth', error: 'the judge gave no answer' },
  ];
  const validations = [validation(0, 0), validation(1, 3), validation(2)];
  await service.succeed('evals.reportTrial', report(run, 0, { passed: true, validations, judgments }));
  const kept = { ...text, format: 'text', state: 'captured' };
  const recorded = (await onlyRun(service)).trials?.[0]?.validations;
  expect(recorded?.[0]).toEqual({
    id: 'v0',
    index: 0,
    name: 'check 0',
    kind: 'code',
    status: 'passed',
    exitCode: 0,
    output: kept,
    logs: [{ index: 0, at: 1, level: 'stdout', value: kept }],
    calls: [{ index: 0, startedAt: 1, durationMs: 2, method: 'answer', input: kept }],
    judgment: judgments[0],
  });
  expect(recorded?.map(({ name, kind, status }) => [name, kind, status])).toEqual([
    ['check 0', 'code', 'passed'],
    ['check 1', 'code', 'failed'],
    ['check 2', 'code', 'voided'],
    ['tone', 'judgment', 'failed'],
    ['style', 'judgment', undefined],
    ['depth', 'judgment', 'voided'],
  ]);
});

test.each([
  [{ outcome: { passed: true, modelMs: -1 } }, 'trial.outcome.modelMs: is negative'],
  [{ usage: { costUsd: -0.5 } }, 'trial.usage.costUsd: is negative'],
  [{ usage: { inputTokens: -3 } }, 'trial.usage.inputTokens: is negative'],
  [{ usage: { outputTokens: 1e308 } }, 'trial.usage.outputTokens: is more than 1000000000000'],
  [{ usage: { costUsd: 4e15 } }, 'trial.usage.costUsd: is more than 1000000000'],
  [{ outcome: { passed: true, sandboxMs: 4e11 } }, 'trial.outcome.sandboxMs: is more than 31622400000'],
  [
    { events: [{ _tag: 'command', command: 'ls', finishedAtMillis: 9e15 }] },
    'trial.events[0].finishedAtMillis: is more than 4102444800000',
  ],
  [
    { events: [{ _tag: 'command', command: 'ls', startedAtMillis: -1 }] },
    'trial.events[0].startedAtMillis: is negative',
  ],
  [
    {
      outcome: {
        passed: false,
        validations: [
          { id: 'a', index: 0, name: 'one', durationMs: -2 },
          { id: 'a', index: 1, name: 'two' },
        ],
      },
    },
    'trial.outcome.validations[0].durationMs: is negative; trial.outcome.validations[1].id: is the id of another validation too',
  ],
  [
    {
      outcome: {
        passed: true,
        verifySteps: [
          { command: 'a', exitCode: 0 },
          { command: 'b', exitCode: 2 },
        ],
      },
    },
    'trial.outcome.passed: is true, but verifySteps[1] failed',
  ],
])('a report that contradicts itself is refused with the place: %j', async (given, message) => {
  const { outcome, ...change } = given as Record<string, Record<string, unknown> | undefined>;
  await using service = openTestService();
  const run = await startRun(service);
  const answer = await service.ask('evals.reportTrial', report(run, 0, outcome, change));
  expect([answer.status, answer.body]).toMatchObject([400, { message }]);
  await service.succeed(
    'evals.reportTrial',
    report(run, 0, undefined, { events: [{ _tag: 'own', at: -1 }] }),
  );
});
