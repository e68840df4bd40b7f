import { expect, test } from 'vitest';
import { openTestService, report, startRequest, startRun } from './test-service.ts';

test('a trial of 20,000 commands can be reported, and one of 40,000 is refused as a whole', async () => {
  await using service = openTestService();
  const command = {
    _tag: 'command',
    command: 'make',
    exitCode: 0,
    startedAtMillis: 1,
    finishedAtMillis: 2,
    output: '',
    outputTruncated: false,
  };
  const run = await startRun(service);
  const tooMany = await service.issues(
    'evals.reportTrial',
    report(run, 0, {}, { events: Array(40_000).fill(command) }),
  );
  // A client reads it as a possible refusal of the events, and sends the trial without them.
  expect(tooMany).toEqual([
    { _tag: 'Refinement', path: ['trial'], message: 'the document has more than 400000 values' },
  ]);
  await service.succeed('evals.reportTrial', report(run, 0, {}, { events: Array(20_000).fill(command) }));
  const { runs } = await service.succeed('evals.runs.list', { caseId: 'csv' });
  expect(runs[0]?.trials?.[0]?.trajectory).toHaveLength(20_000);
});

test('variables may be nested a hundred deep', async () => {
  await using service = openTestService();
  const deep = JSON.parse(`${'[{"a":'.repeat(50)}1${'}]'.repeat(50)}`);
  const cases = [{ id: 'csv', name: 'CSV', verify: 'echo {{deep}}', variables: { deep } }];
  await service.succeed('evals.start', startRequest({ cases }));
  const { runs } = await service.succeed('evals.runs.list', { caseId: 'csv' });
  expect(runs[0]?.setup?.verify).toBe(`echo ${JSON.stringify(deep)}`);
});

test('the entries of a list are told up to the number of issues that an answer may have', async () => {
  await using service = openTestService();
  const issues = await service.issues('evals.start', startRequest({ cases: Array(100).fill({}) }));
  expect(issues).toHaveLength(100);
  expect(issues[0]).toMatchObject({ _tag: 'Missing', path: ['cases', 0, 'id'] });
  const tooMany = await service.issues('evals.start', startRequest({ cases: Array(150_000).fill({}) }));
  expect(tooMany).toMatchObject([{ _tag: 'Refinement', path: ['cases'] }]);
});
