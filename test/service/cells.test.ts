import { expect, test } from 'vitest';
import { onlyRun, openTestService, report, startRequest, startRun } from './test-service.ts';

test('a rerun is a new queued run of the same cell, in the same batch', async () => {
  await using service = openTestService();
  const cases = [{ id: 'a:b', name: 'CSV', verify: 'v' }];
  const batch = await service.succeed('evals.start', startRequest({ cases }));
  const first = await onlyRun(service, 'a:b');
  const cellKey = `a:b:${first.variant?.id}`;
  const { id } = await service.succeed('evals.rerunCell', { id: batch.id, cellKey });
  const { runs, total } = await service.succeed('evals.runs.list', { caseId: 'a:b' });
  expect(total).toBe(2);
  expect(runs[0]).toEqual({ ...first, id, trials: [expect.anything(), expect.anything()] });
  expect(runs[1]).toEqual(first);
  // The third run of the batch can be reported by its place in it, too.
  await service.succeed('evals.rerunCell', { id: batch.id, cellKey, trials: 5 });
  await service.succeed('evals.reportTrial', report(batch.id, 4, { passed: true }, { taskIndex: 2 }));
  const { runs: after } = await service.succeed('evals.runs.list', { caseId: 'a:b' });
  expect(after.map((run) => [run.status, run.trials?.length])).toEqual([
    ['running', 5],
    ['queued', 2],
    ['queued', 2],
  ]);
});

test('of a cell that is not found, the answer says which part is wrong', async () => {
  await using service = openTestService();
  const batch = await service.succeed('evals.start', startRequest());
  const variant = (await onlyRun(service)).variant?.id;
  for (const [id, cellKey, why] of [
    ['batch_none', `csv:${variant}`, 'There is no batch batch_none.'],
    [batch.id, `toml:${variant}`, 'has no case toml; it has csv.'],
    [batch.id, 'csv:v_none', `has no variant v_none; it has ${variant}.`],
    [batch.id, 'csv', 'The cell has no case'],
    [batch.id, `:${variant}`, 'has no case: write'],
  ]) {
    const { status, body } = await service.ask('evals.rerunCell', { id, cellKey });
    expect([status, JSON.stringify(body)]).toEqual([404, expect.stringContaining(String(why))]);
  }
});

test('the cases are those that runs were started for, as they were last', async () => {
  await using service = openTestService();
  await startRun(service, { cases: [{ id: 'csv', name: 'Old', tags: ['x'] }] });
  await startRun(service, {
    cases: [
      { id: 'csv', name: 'New' },
      { id: 'toml', name: 'TOML' },
    ],
  });
  await startRun(service, { suite: { id: 'other', name: 'Other', prompt: '' } });
  const parsers = { id: 'parsers', name: 'Parsers' };
  const expected = [
    { id: 'csv', name: 'CSV', suite: { id: 'other', name: 'Other' } },
    { id: 'csv', name: 'New', suite: parsers },
    { id: 'toml', name: 'TOML', suite: parsers },
  ];
  expect(await service.succeed('evals.cases.list', {})).toEqual({ cases: expected });
  expect(await service.succeed('evals.cases.list', { suite: 'parsers' })).toEqual({
    cases: expected.slice(1),
  });
  expect(await service.succeed('evals.cases.list', { suite: 'none' })).toEqual({ cases: [] });
});
