import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { offsite, start } from './offsite.ts';
import { openPlace } from './place.ts';

test('resume writes and compares results as run does', async () => {
  using place = openPlace();
  const cases = [
    { id: 'quick', verify: 'true', variables: { act: 'true' } },
    {
      id: 'slow',
      verify: 'echo "FAILED test_a.py::test_b - no"; exit 1',
      variables: { act: 'sleep "$SLOW"' },
    },
  ];
  const suite = place.suite({ cases, sandbox: { passEnv: ['SLOW'] } });
  const env = { SLOW: '0' };
  const first = await offsite(place, ['run', suite, '-c', '2', '--json', '--html', 'first.html'], { env });
  expect(first.exitCode, first.stderr).toBe(0);
  const { batchId } = JSON.parse(first.stdout);
  const page = readFileSync(join(place.folder, 'first.html'), 'utf8');
  expect(page).toMatch(/^<!doctype html>/);
  expect(first.stderr).toContain(`first.html: 2 trials of ${batchId}`);

  const second = start(place, ['run', suite, '-c', '2'], { env: { SLOW: '600' } });
  await second.printed(/✓ quick/);
  second.kill('SIGTERM');
  expect((await second.ended).exitCode).toBe(130);

  const files = ['--junit', 'resumed.xml', '--html', 'resumed.html'];
  const comparing = ['--compare-to', batchId, '--fail-on-regression', '--fail-under', '0.9'];
  const resumed = await offsite(place, ['resume', ...files, ...comparing], { env });
  expect(resumed.exitCode, resumed.stderr).toBe(1);
  expect(resumed.stdout).toMatch(/^batch \S+: 1 trial finished now, 1 before$/m);
  expect(resumed.stderr).toContain(
    `cannot show a regression of worker with 2 cases and 1 trial of each: compared with ${batchId}`,
  );
  expect(resumed.stderr).toContain('below 90 % (--fail-under)');
  const junit = readFileSync(join(place.folder, 'resumed.xml'), 'utf8');
  expect(junit).toMatch(/<failure message="verify: [^"]* exited 1: [^"]*test_a\.py::test_b/);
  expect(junit).toContain('\nFAILED test_a.py::test_b - no');
  expect(readFileSync(join(place.folder, 'resumed.html'), 'utf8')).toMatch(/^<!doctype html>/);
});

test('of several batches, resume compares each and reports each in files of its own', async () => {
  using place = openPlace();
  const slow = { verify: 'true', variables: { act: 'sleep "$SLOW"' } };
  const sandbox = { passEnv: ['SLOW'] };
  const suiteOf = (id: string) => place.suite({ cases: [{ id, ...slow }], sandbox });
  const env = { SLOW: '0' };
  const first = await offsite(place, ['run', suiteOf('one'), '--json'], { env });
  const { batchId } = JSON.parse(first.stdout);

  const stopped = async (id: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<string> => {
    const running = start(place, ['run', suiteOf(id)], { env: { SLOW: '600' } });
    const [, batch = ''] = await running.printed(/batch (\S+): 1 trial/);
    running.kill(signal);
    await running.ended;
    return batch;
  };
  const killed = await stopped('one', 'SIGKILL');
  const canceled = await stopped('one', 'SIGTERM');
  const others = await stopped('another', 'SIGTERM');

  const files = ['--junit', 'resumed.xml', '--html', 'resumed.html'];
  const again = start(place, ['resume', ...files], { env: { SLOW: '600' } });
  await again.printed(/resuming batch/);
  again.kill('SIGTERM');
  const { stdout, stderr } = await again.ended;
  const ends = stdout.split('\n').filter((line) => line.includes('interrupted by SIGTERM'));
  expect(ends.toSorted()).toEqual(
    [killed, canceled, others]
      .map((batch) => `${batch}: interrupted by SIGTERM: 0 trials finished, 1 left`)
      .toSorted(),
  );
  expect(stderr.match(/^resumed-2\.xml: batch_\S+$/gm), stderr).toHaveLength(1);

  const gate = ['--compare-to', batchId, '--fail-on-case-regression'];
  const resumed = await offsite(place, ['resume', ...files, ...gate], { env });
  for (const batch of [killed, canceled])
    expect(resumed.stderr).toContain(
      `${batch}: no case regression: no case that always passed in ${batchId}`,
    );
  expect(resumed.stderr).toContain(
    `${others}: not compared: ${batchId} has no case of this suite with a verdict`,
  );
  // Its gate has judged nothing.
  expect(resumed.exitCode, resumed.stderr).toBe(3);
  const reported = ['resumed.xml', 'resumed-2.xml', 'resumed-3.xml'].map((file) =>
    readFileSync(join(place.folder, file), 'utf8'),
  );
  const all = [killed, canceled, others];
  expect(reported.map((xml) => all.find((batch) => xml.includes(batch))).toSorted()).toEqual(all.toSorted());
  expect(resumed.stderr).toMatch(/^resumed-3\.xml: batch_/m);
  expect(await offsite(place, ['resume', ...gate], { env })).toMatchObject({ exitCode: 0 });
});

test('options for results that lack another one are refused by both commands', async () => {
  using place = openPlace();
  for (const command of [['run', 'suite.yaml'], ['resume']]) {
    const { exitCode, stderr } = await offsite(place, [...command, '--fail-on-regression']);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('needs --compare-to')]);
  }
});
