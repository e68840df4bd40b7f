import { expect, test } from 'vitest';
import { startRequest } from '../service/test-service.ts';
import { openFlakyService } from './flaky-service.ts';
import { offsite } from './offsite.ts';
import { openPlace } from './place.ts';

type Listed = { runs: { batchId: string; variant: { id: string } }[] };

test('a cell that others started is queued again by the names that commands print', async () => {
  using place = openPlace();
  await using service = await openFlakyService(place);
  const { env } = service;
  await service.ask('evals.start', startRequest());
  const listed = async () => ((await service.ask('evals.runs.list', { caseId: 'csv' })) as Listed).runs;
  const [run] = await listed();
  const { batchId = '', variant } = run ?? {};
  const rerun = (batch: string, cell: string, ...more: string[]) =>
    offsite(place, ['service', 'rerun', batch, cell, ...more], { env });
  const short = batchId.replace('batch_', '').slice(0, 6);
  for (const cell of [`csv/${variant?.id}`, `csv:${variant?.id}`]) {
    const { exitCode, stderr } = await rerun(short, cell, '--trials', '1');
    expect(exitCode, stderr).toBe(0);
  }
  expect((await rerun(batchId, `csv/${variant?.id}`)).exitCode).toBe(0);
  expect((await listed()).map((again) => again.batchId)).toEqual([batchId, batchId, batchId, batchId]);
  const unknown = await rerun(batchId, 'toml/v_none');
  expect([unknown.exitCode, unknown.stderr]).toEqual([
    2,
    expect.stringContaining('has no case toml; it has csv'),
  ]);
});
