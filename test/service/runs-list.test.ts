import fc from 'fast-check';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { openService } from '../../src/service/service.ts';
import { openTestService, report, startRequest, startRun } from './test-service.ts';

test('runs are listed newest first, 20 to a page, and every run once', async () => {
  await using service = openTestService();
  const started: string[] = [];
  for (let batch = 0; batch < 45; batch++) started.push(await startRun(service, { trials: 1 }));
  const pages = await Promise.all(
    [1, 2, 3, 4].map((page) => service.succeed('evals.runs.list', { caseId: 'csv', page })),
  );
  expect(pages.map(({ runs }) => runs.length)).toEqual([20, 20, 5, 0]);
  expect(pages.flatMap(({ runs }) => runs.map(({ id }) => id))).toEqual(started.toReversed());
  for (const [index, { page, pageSize, total }] of pages.entries()) {
    expect([page, pageSize, total]).toEqual([index + 1, 20, 45]);
  }
});

test('a page has the runs of its place, whatever was listed and started before, also by another process', async () => {
  const models = ['small', 'large'];
  const step = fc.oneof(
    fc.record({ start: fc.array(fc.constantFrom(...models), { minLength: 1, maxLength: 20 }) }),
    fc.record({ page: fc.integer({ min: 1, max: 8 }), variant: fc.constantFrom(undefined, ...models) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 40 }), async (steps) => {
      await using service = openTestService();
      const folder = service.folder;
      const other = openService({ dataFolder: folder, clock: systemClock, integrations: [] });
      const newestFirst: { id: string; model: string }[] = [];
      for (const [index, one] of steps.entries()) {
        if ('start' in one) {
          const body = JSON.stringify(startRequest({ variants: one.start.map((model) => ({ model })) }));
          const headers = { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' };
          const asked = new Request('http://service.test/v1/evals.start', { method: 'POST', headers, body });
          const answer = await (index % 2 ? other : service.service).fetch(asked);
          const { runs } = (await answer.json()) as { runs: { id: string; variantIndex: number }[] };
          for (const { id, variantIndex } of runs)
            newestFirst.unshift({ id, model: one.start[variantIndex] ?? '' });
          continue;
        }
        const listed = newestFirst.filter(({ model }) => one.variant === undefined || model === one.variant);
        const { runs, total } = await service.succeed('evals.runs.list', { caseId: 'csv', ...one });
        const expected = listed.slice((one.page - 1) * 20, one.page * 20);
        expect([total, ...runs.map(({ id }) => id)]).toEqual([
          listed.length,
          ...expected.map(({ id }) => id),
        ]);
      }
      await other.close();
    }),
    { numRuns: 8 },
  );
});

test('pages count from 1; 0 and none are the first', async () => {
  await using service = openTestService();
  await startRun(service);
  for (const page of [undefined, 0, 1]) {
    const answer = await service.succeed('evals.runs.list', { caseId: 'csv', page });
    expect([answer.page, answer.runs.length]).toEqual([1, 1]);
  }
});

test('a page past the end is empty, however far it is', async () => {
  await using service = openTestService();
  await startRun(service);
  for (const page of [2, 1e9, Number.MAX_SAFE_INTEGER]) {
    expect(await service.succeed('evals.runs.list', { caseId: 'csv', page })).toEqual({
      page,
      pageSize: 20,
      total: 1,
      runs: [],
    });
  }
});

test('a case that nothing was started for has no runs', async () => {
  await using service = openTestService();
  expect(await service.succeed('evals.runs.list', { caseId: 'csv' })).toMatchObject({ total: 0, runs: [] });
});

test('runs can be asked for by variant or by model, with their own total', async () => {
  await using service = openTestService();
  const of = (harness: string, model: string) => ({
    model,
    credentials: { harnessConnectionId: harness, sandboxConnectionId: 'docker' },
  });
  const variants = [of('one', 'small'), of('two', 'small'), of('one', 'large')];
  await service.succeed('evals.start', startRequest({ variants }));
  const { runs } = await service.succeed('evals.runs.list', { caseId: 'csv' });
  const listed = async (variant: string | undefined) => {
    const answer = await service.succeed('evals.runs.list', { caseId: 'csv', variant });
    expect(answer.total).toBe(answer.runs.length);
    return answer.runs.map((run) => [run.variant?.harness, run.variant?.model]);
  };
  expect(await listed('small')).toEqual([
    ['two', 'small'],
    ['one', 'small'],
  ]);
  expect(await listed(runs[0]?.variant?.id)).toEqual([['one', 'large']]);
  expect(await listed('none')).toEqual([]);
});

test('a page with many megabytes of trials arrives whole', async () => {
  await using service = openTestService();
  const run = await startRun(service, { trials: 10 });
  const output = '😀é\n'.repeat(200_000);
  for (let ordinal = 0; ordinal < 10; ordinal++) {
    const events = [{ _tag: 'command', command: 'cat', output }];
    await service.succeed('evals.reportTrial', report(run, ordinal, { passed: true }, { events }));
  }
  const { runs } = await service.succeed('evals.runs.list', { caseId: 'csv' });
  expect(runs[0]?.trials).toHaveLength(10);
  for (const trial of runs[0]?.trials ?? []) expect(trial.trajectory?.[0]?.output === output).toBe(true);
});
