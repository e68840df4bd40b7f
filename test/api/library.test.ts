import { readFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { type RunEvent, readBatch, runSuite } from '../../src/api/index.ts';
import { eachPlace, place } from '../cli/each-place.ts';

const slow = { id: 'slow', variables: { act: 'sleep 100' }, verify: 'true' };
const good = {
  id: 'good',
  variables: { act: 'echo hello > a.txt' },
  verify: 'test -f a.txt',
  artifacts: ['*.txt'],
};
const bad = { id: 'bad', variables: { act: 'true' }, verify: 'test -f a.txt' };

eachPlace();

function given(more: object = {}) {
  const { OFFSITE_URL: _, ...env } = process.env;
  return { dataFolder: place.dataFolder, env: { ...env, HOME: place.folder }, ...more };
}

test('a program runs a suite and reads its results; nothing prints, and the process stays as it was', async () => {
  const file = place.suite({ cases: [good, bad], trials: 2 });
  const written = [process.stdout, process.stderr].map((stream) => vi.spyOn(stream, 'write'));
  const listeners = () => process.eventNames().map((name) => [name, process.listenerCount(name)]);
  const before = listeners();
  const events: RunEvent[] = [];
  const batch = await runSuite(file, given({ onEvent: (event: RunEvent) => void events.push(event) }));
  for (const write of written) expect(write).not.toHaveBeenCalled();
  expect(process.exitCode).toBeUndefined();
  expect(listeners()).toEqual(before);
  vi.restoreAllMocks();

  expect(batch).toMatchObject({
    suite: 'small',
    service: 'embedded',
    passed: 2,
    failed: 2,
    void: 0,
    unfinished: 0,
    passRate: 0.5,
    batchIds: [batch.id],
  });
  const [first, , third] = batch.trials;
  expect(first).toMatchObject({ case: 'good', variant: 'worker', ordinal: 0, verdict: 'passed', why: '' });
  expect(third).toMatchObject({ case: 'bad', ordinal: 0, verdict: 'failed' });
  expect(third?.name).toBe(`${batch.id}:bad/worker#0`);
  expect(third?.why).toContain('test -f a.txt');
  expect(first?.durationMs).toBeGreaterThan(0);
  const [artifact] = first?.artifacts() ?? [];
  expect(artifact?.path).toBe('a.txt');
  expect(readFileSync(artifact?.file ?? '', 'utf8')).toBe('hello\n');
  expect(first?.record()).toEqual(JSON.parse(readFileSync(first?.recordFile ?? '', 'utf8')));

  expect(events).toContainEqual({ kind: 'started', batchId: batch.id, trials: 4 });
  const ended = events.filter((event) => event.kind === 'finished');
  expect(ended).toHaveLength(4);
  expect(ended).toContainEqual(expect.objectContaining({ case: 'bad', verdict: 'failed', why: third?.why }));

  const again = await readBatch('last', given());
  const plain = (one: typeof batch) => JSON.stringify(one);
  expect(plain(again)).toBe(plain(batch));
});

test('chosen cases and variants run; a wrong name is an error with a code', async () => {
  const file = place.suite({ cases: [good, bad] });
  const batch = await runSuite(file, given({ include: ['good'], variants: ['worker'], trials: 1 }));
  expect(batch.trials.map((trial) => trial.case)).toEqual(['good']);
  await expect(runSuite(file, given({ variants: ['other'] }))).rejects.toMatchObject({
    code: 'VARIANT_UNKNOWN',
  });
  await expect(readBatch('batch_none', given())).rejects.toMatchObject({ code: 'BATCH_UNKNOWN' });
});

test('a signal stops the trials, and what is finished can be read', async () => {
  const file = place.suite({ cases: [good, slow] });
  const stop = new AbortController();
  const reason = new Error('enough');
  const onEvent = (event: RunEvent) => event.kind === 'finished' && stop.abort(reason);
  const running = runSuite(file, given({ signal: stop.signal, onEvent, concurrency: 1 }));
  await expect(running).rejects.toBe(reason);
  expect(await readBatch('last', given())).toMatchObject({ passed: 1, unfinished: 1 });
});

test('an error of the listener ends the run with that error', async () => {
  const file = place.suite({ cases: [good, slow] });
  const mistake = new TypeError('no such member');
  const onEvent = (event: RunEvent) => {
    if (event.kind === 'finished') throw mistake;
  };
  await expect(runSuite(file, given({ onEvent, concurrency: 1 }))).rejects.toBe(mistake);
});
