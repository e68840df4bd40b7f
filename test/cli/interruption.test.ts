import { describe, expect, test } from 'vitest';
import { runsOf } from './ask.ts';
import { containersOnce } from './containers.ts';
import { offsite, type Running, start } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

const cases = [
  { id: 'quick', verify: 'true', variables: { act: 'true' } },
  { id: 'slow', verify: 'true', variables: { act: 'sleep 600' } },
];

/** Starts a batch and waits until its quick trial is reported and its slow one is at work; returns the agent's instance. */
async function inTheMiddle(place: Place): Promise<{ running: Running; instance: string }> {
  const running = start(place, ['run', place.suite({ cases }), '-c', '2']);
  const [, batch] = await running.printed(/batch (\S+): 2 trials/);
  await running.printed(/✓ quick/);
  // The one it works in, and the one that verify is to run in.
  const [sandbox] = await containersOnce(
    [`offsite.batch=${batch}`],
    (containers) => containers.length === 2 && containers.every(({ state }) => state === 'running'),
  );
  const instance = sandbox?.instance ?? '';
  await containersOnce([`offsite.instance=${instance}`], (containers) =>
    containers.some(({ role, state }) => role === 'marker' && state === 'running'),
  );
  return { running, instance };
}

const none = (containers: unknown[]) => containers.length === 0;

describe.concurrent('offsite run', () => {
  test('at Ctrl-C removes its sandboxes, keeps and reports what was finished, and exits 130', async () => {
    using place = openPlace();
    const { running, instance } = await inTheMiddle(place);
    running.kill('SIGINT');
    const { exitCode, stdout, stderr } = await running.ended;
    expect(exitCode).toBe(130);
    expect(stdout).toMatch(/^quick · worker +1 +0 +0 +100 %/m);
    expect(stdout).toMatch(/^interrupted: 1 trial finished, 1 left$/m);
    expect(stderr).toContain('SIGINT: stopping the trials');
    expect(stderr).not.toContain('    at ');
    await containersOnce([`offsite.instance=${instance}`], none);
    const runs = await runsOf(place, 'quick', 'slow');
    expect(runs.map(({ trials }) => trials?.map(({ status }) => status))).toEqual([['reported'], ['queued']]);
    expect((await offsite(place, ['outbox'])).stdout).toBe('nothing waits to be reported\n');
  });

  test('that was killed leaves sandboxes, which the next run removes', async () => {
    using place = openPlace();
    const { running, instance } = await inTheMiddle(place);
    running.kill('SIGKILL');
    await running.ended;
    const mine = [`offsite.instance=${instance}`];
    const left = await containersOnce(mine, (containers) =>
      containers.some(({ role, state }) => role === 'marker' && state === 'exited'),
    );
    expect(left.map(({ role }) => role).sort()).toEqual(['container', 'container', 'marker']);
    const next = await offsite(place, ['run', place.suite({ cases: [{ id: 'next', verify: 'true' }] })]);
    expect(next.exitCode).toBe(0);
    await containersOnce(mine, none);
  });
});
