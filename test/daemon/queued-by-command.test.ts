import { expect, test } from 'vitest';
import { openDaemonPlace } from './daemon-place.ts';

test('a suite that is queued at the service for daemons is run by one that watches it', {
  timeout: 60_000,
}, async () => {
  await using at = await openDaemonPlace();
  at.configure();
  const suite = {
    suite: { id: 'small', prompt: 'Do it.' },
    trials: 2,
    variants: [{ model: 'none', harness: 'command', profile: 'worker' }],
    cases: [{ id: 'a', verify: 'cat done.txt' }],
  };
  const file = at.place.write('suite.json', JSON.stringify(suite));
  const whole = await at.command('service', 'start', file, '--for-daemons');
  expect(whole.exitCode).toBe(2);
  expect(whole.stderr).toContain('variants[0].profile');
  const started = await at.command('service', 'start', file, '--for-daemons', '--drop-local');
  expect(started, started.stderr).toMatchObject({ exitCode: 0 });
  expect(started.stderr).toContain('daemons with small in daemon.suites run it');
  const { exitCode, stderr } = await at.drained();
  expect(exitCode, stderr).toBe(0);
  expect(await at.runs('a')).toMatchObject([{ trials: [{ status: 'reported' }, { status: 'reported' }] }]);
});

test('a daemon whose key may not claim is not well', { timeout: 60_000 }, async () => {
  await using at = await openDaemonPlace();
  at.configure();
  at.service.forbidden.add('evals.claimTrial');
  await at.daemon();
  const { health } = await at.once(({ health }) => !health.ok);
  expect(health.troubles.join()).toContain('lacks the permission evals:write');
  at.service.forbidden.clear();
  await at.once(({ health }) => health.ok);
});
