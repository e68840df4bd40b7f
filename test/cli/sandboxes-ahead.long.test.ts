import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { connectEngine } from '../../src/engine/connect.ts';
import { dockerOf } from '../engine/docker-of.ts';
import { offsite } from './offsite.ts';
import { openPlace } from './place.ts';

interface Created {
  /** The service's id of the run. */
  run: string;
  /** Epoch milliseconds. */
  at: number;
}

/** Listens for containers of trials until it is disposed. */
async function watchCreations(): Promise<AsyncDisposable & { of(batch: string): Created[] }> {
  const engine = await connectEngine({ instance: `test-ahead-${process.pid}` });
  const filters = { type: ['container' as const], event: ['create'], label: ['offsite.run'] };
  const stream = await dockerOf(engine).getEvents({ filters });
  let text = '';
  stream.on('data', (chunk) => {
    text += chunk;
  });
  return {
    of(batch) {
      const events = text.split('\n').flatMap((line) => (line.trim() === '' ? [] : [JSON.parse(line)]));
      const ours = events.filter(({ Actor }) => Actor.Attributes['offsite.batch'] === batch);
      return ours.map(({ Actor, timeNano }) => ({
        run: Actor.Attributes['offsite.run'],
        at: timeNano / 1e6,
      }));
    },
    async [Symbol.asyncDispose]() {
      (stream as unknown as { destroy(): void }).destroy();
      await engine[Symbol.asyncDispose]();
    },
  };
}

test('the sandbox of a trial starts ahead only while the trial before it runs, whatever was built meanwhile', async () => {
  using place = openPlace();
  await using creations = await watchCreations();
  // The first two of the queue become ready in the other order, while a third one runs and a fourth waits.
  const slow = (id: string, seconds: number) => ({
    id,
    verify: 'true',
    variables: { seconds: '2' },
    prepare: `sleep ${seconds} # ${place.folder}`,
  });
  const quick = (id: string, seconds: string) => ({ id, verify: 'true', variables: { seconds } });
  const cases = [slow('slowest', 10), slow('slow', 5), quick('one', '14'), quick('other', '14')];
  const suite = place.suite({ run: 'sleep $seconds', cases });
  const { exitCode, stderr, stdout } = await offsite(place, ['run', suite, '-c', '1', '--json']);
  expect(exitCode, stderr).toBe(0);
  const created = creations.of(JSON.parse(stdout).batchId);
  using database = new DatabaseSync(join(place.dataFolder, 'ledger.db'), { readOnly: true });
  const trials = database
    .prepare(
      `SELECT runs.id, runs.case_id, trials.finished_at FROM trials JOIN runs ON runs.key = trials.run
       JOIN attempts ON attempts.trial = trials.key ORDER BY attempts.started_at`,
    )
    .all();
  const order = trials.map(({ case_id }) => case_id);
  expect(order.at(-1), 'all overtake the first of the queue').toBe('slowest');
  const firstSandboxes = trials.map(({ id }) =>
    Math.min(...created.filter(({ run }) => run === id).map(({ at }) => at)),
  );
  for (const [index, at] of firstSandboxes.entries()) {
    expect(at, `${order[index]} has a sandbox`).toBeLessThan(Number.POSITIVE_INFINITY);
    // While the trial before the previous one still runs, it is too early. Its end is noted when its result
    // is on the disk, for which the next one does not wait; the shortest trial takes twice that second.
    const earliest = Number(trials[index - 2]?.finished_at ?? 0) - 1_000;
    expect(at, `${order[index]} of ${order}: its sandbox started too early`).toBeGreaterThanOrEqual(earliest);
    // It did start ahead: before the trial that runs had ended.
    const latest = Number(trials[index - 1]?.finished_at ?? Number.POSITIVE_INFINITY);
    expect(at, `${order[index]} of ${order}: its sandbox did not start ahead`).toBeLessThan(latest);
  }
});
