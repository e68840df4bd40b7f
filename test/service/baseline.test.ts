import { expect, test } from 'vitest';
import type { TrialRecord } from '../../src/record/trial-record.ts';
import { testPlatform, trialRecord } from './test-platform.ts';
import { openTestService, report, startRequest, type TestService } from './test-service.ts';

const commands = (count: number) =>
  Array.from({ length: count }, () => ({ _tag: 'command' as const, command: 'true' }));

/** Starts a platform batch and ends the trials of its first run. Returns the run's id. */
async function ran(
  { service, succeed }: TestService,
  records: Partial<TrialRecord>[],
  change: Record<string, unknown> = {},
): Promise<string> {
  const { runs } = await succeed('evals.start', startRequest({ local: false, ...change }));
  const [run] = runs;
  if (!run) throw new Error('no run was started');
  for (const [ordinal, record] of records.entries()) {
    await service.platform.complete(run.id, ordinal, trialRecord(record));
  }
  return run.id;
}

test('a baseline is made of completed trials alone, with reported ones in the same case', async () => {
  await using service = openTestService(undefined, testPlatform());
  expect(await service.succeed('evals.baseline', { caseId: 'csv' })).toEqual({ baselines: [], more: 0 });
  const { runs } = await service.succeed('evals.start', startRequest());
  for (const ordinal of [0, 1]) await service.succeed('evals.reportTrial', report(runs[0]?.id, ordinal));
  expect(await service.succeed('evals.baseline', { caseId: 'csv' })).toEqual({ baselines: [], more: 0 });

  const older = await ran(service, [
    { verdict: 'passed', trajectory: commands(2), harnessVersion: '1.0' },
    { verdict: 'failed', trajectory: commands(7), harnessVersion: '1.1' },
  ]);
  service.clock.advance(60_000);
  const newer = await ran(service, [{ verdict: 'void' }]);
  const { runs: recorded } = await service.succeed('evals.runs.list', { caseId: 'csv' });
  expect(recorded.map(({ local, status }) => [local, status])).toEqual([
    [false, 'running'],
    [false, 'completed'],
    [true, 'completed'],
  ]);
  const [{ batchId = '', variant, definitionHash } = {}, before] = recorded;
  expect(await service.succeed('evals.baseline', { caseId: 'csv' })).toEqual({
    baselines: [
      {
        suite: { id: 'parsers', name: 'Parsers' },
        case: { id: 'csv', name: 'CSV' },
        variant,
        definitionHash,
        distribution: {
          trials: 4,
          scored: 2,
          passed: 1,
          failed: 1,
          voided: 1,
          passRate: 0.5,
          deterministic: false,
          commandMin: 2,
          commandMedian: 4.5,
          commandMax: 7,
        },
        // Wilson's interval for 1 of 2, as statsmodels computes it.
        passRateInterval: {
          low: expect.closeTo(0.094531, 6),
          high: expect.closeTo(0.905469, 6),
          confidence: 0.95,
        },
        runs: [
          { id: newer, batchId, startedAt: '2026-03-01T12:01:00.000Z', passed: 0, failed: 0, voided: 1 },
          {
            id: older,
            batchId: before?.batchId,
            startedAt: '2026-03-01T12:00:00.000Z',
            harnessVersion: '1.0, 1.1',
            passed: 1,
            failed: 1,
            voided: 0,
          },
        ],
        notCounted: { sameDefinition: 0, otherProfiles: 0, otherDefinitions: 0 },
      },
    ],
    more: 0,
  });
});

test('each variant and each suite has its own baseline, the newest first', async () => {
  await using service = openTestService(undefined, testPlatform());
  const passed = [{ verdict: 'passed' }] as const;
  await ran(service, [...passed], { variants: [{ model: 'small' }] });
  await ran(service, [...passed], { variants: [{ model: 'large' }] });
  await ran(service, [...passed], { suite: { id: 'other', name: 'Other', prompt: 'Mend the parser.' } });
  const of = async (request: object) => {
    const { baselines } = await service.succeed('evals.baseline', { caseId: 'csv', ...request });
    return baselines.map(({ suite, variant }) => `${suite.id} ${variant.model}`);
  };
  expect(await of({})).toEqual(['other small', 'parsers large', 'parsers small']);
  expect(await of({ suite: 'parsers' })).toEqual(['parsers large', 'parsers small']);
  expect(await of({ variant: 'small' })).toEqual(['other small', 'parsers small']);
  const { baselines } = await service.succeed('evals.baseline', { caseId: 'csv', suite: 'other' });
  expect(await of({ variant: baselines[0]?.variant.id })).toEqual(['other small', 'parsers small']);
  expect(await of({ variant: 'none' })).toEqual([]);
  expect(await of({ caseId: 'toml' })).toEqual([]);
});

test('runs of an older definition do not count, and neither do runs without an ended trial', async () => {
  await using service = openTestService(undefined, testPlatform());
  const cases = (verify: string) => ({ cases: [{ id: 'csv', name: 'CSV', verify }] });
  await ran(service, [{ verdict: 'failed' }], cases('old'));
  await ran(service, [{ verdict: 'failed' }], cases('old'));
  const baseline = async () => (await service.succeed('evals.baseline', { caseId: 'csv' })).baselines[0];
  const counted = await ran(service, [{ verdict: 'passed' }], cases('new'));
  await ran(service, [], cases('new'));
  expect(await baseline()).toMatchObject({
    runs: [{ id: counted }],
    distribution: { scored: 1, passed: 1 },
    notCounted: { sameDefinition: 1, otherProfiles: 0, otherDefinitions: 2 },
  });
  // A batch that was only just started leaves the baseline of the definition before it.
  await ran(service, [], cases('newest'));
  expect(await baseline()).toMatchObject({
    runs: [{ id: counted }],
    notCounted: { sameDefinition: 1, otherProfiles: 0, otherDefinitions: 3 },
  });
});

test('a baseline is made of the newest 100 runs, and says how many it leaves out', async () => {
  await using service = openTestService(undefined, testPlatform());
  const started = await service.succeed('evals.start', startRequest({ local: false, trials: 1 }));
  const { runs } = await service.succeed('evals.runs.list', { caseId: 'csv' });
  const cellKey = `csv:${runs[0]?.variant?.id}`;
  const ids = [started.runs[0]?.id ?? ''];
  for (let index = 0; index < 103; index++) {
    ids.push((await service.succeed('evals.rerunCell', { id: started.id, cellKey })).id);
  }
  const { platform } = service.service;
  // The four oldest failed.
  await Promise.all(
    ids.map((id, index) =>
      platform.complete(id, 0, trialRecord({ verdict: index < 4 ? 'failed' : 'passed' })),
    ),
  );
  const { baselines } = await service.succeed('evals.baseline', { caseId: 'csv' });
  expect(baselines[0]?.runs.map(({ id }) => id)).toEqual(ids.slice(4).reverse());
  expect(baselines[0]).toMatchObject({
    distribution: { trials: 100, passed: 100, failed: 0 },
    notCounted: { sameDefinition: 4, otherProfiles: 0, otherDefinitions: 0 },
  });
});

test('an organization does not see the baselines of others', async () => {
  await using service = openTestService(undefined, testPlatform());
  await ran(service, [{ verdict: 'passed' }]);
  const other = service.keyFor('Other', 'evals:read');
  expect(await service.succeed('evals.baseline', { caseId: 'csv' }, other)).toEqual({
    baselines: [],
    more: 0,
  });
});

test('with another profile it is another agent, so only the newest profile counts', async () => {
  await using service = openTestService(undefined, testPlatform());
  const subject = (profileVersion: string) => ({
    caseName: 'CSV',
    ordinal: 0,
    model: 'm',
    harness: 'h',
    image: 'i',
    network: 'none',
    prompt: 'p',
    profileVersion,
  });
  const record = (verdict: 'passed' | 'failed', version: string) => ({
    verdict,
    subject: subject(version),
  });
  await ran(service, [record('failed', 'one'), record('failed', 'one')]);
  const newer = await ran(service, [record('passed', 'two')]);
  const unnamed = await ran(service, [{ verdict: 'void' }]);
  const { baselines } = await service.succeed('evals.baseline', { caseId: 'csv' });
  expect(baselines).toMatchObject([
    {
      distribution: { passed: 1, failed: 0, voided: 1 },
      runs: [{ id: unnamed }, { id: newer, profileVersion: 'two' }],
      notCounted: { sameDefinition: 0, otherProfiles: 1, otherDefinitions: 0 },
    },
  ]);
});
