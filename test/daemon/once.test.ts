import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { openDaemonPlace } from './daemon-place.ts';

test('--once exits with 3 if the service refuses the only suite of the queue, and says why', async () => {
  await using at = await openDaemonPlace();
  at.configure();
  const worker = { name: 'worker', model: 'none', harness: 'command', profile: 'worker' };
  const cases = [{ id: 'a', verify: 'true' }];
  const suite = { suite: { id: 'small', prompt: 'Do it.' }, trials: 1, variants: [worker], cases };
  await at.command('daemon', 'enqueue', at.place.write('suite.json', JSON.stringify(suite)));
  at.service.refuse.set('evals.start', { _tag: 'Conflict', message: 'the suite is closed' });
  const { exitCode, stderr } = await at.drained();
  expect(exitCode, stderr).toBe(3);
  expect(stderr).toMatch(/"refused":\{"files":1,"last":"[^"]*the suite is closed/);
});

test('--once exits with 3 if its key may not claim, also if nothing is queued', async () => {
  await using at = await openDaemonPlace();
  at.configure();
  at.service.forbidden.add('evals.claimTrial');
  const { exitCode, stderr } = await at.drained();
  expect(exitCode, stderr).toBe(3);
  expect(stderr).toMatch(
    /the daemon has ended: .*lacks the permission evals:write.: .*keys create --for daemon/,
  );
});

test('systemd is told when it is ready, that it is alive, and that it ends', async () => {
  await using at = await openDaemonPlace();
  at.configure();
  // In the place of systemd's own program, as there may be none here.
  const notices = join(at.place.folder, 'notices');
  const program = at.place.write('bin/systemd-notify', `#!/bin/sh\necho "$NOTIFY_SOCKET $1" >> ${notices}\n`);
  chmodSync(program, 0o755);
  const env = { NOTIFY_SOCKET: '/run/notify', PATH: `${dirname(program)}:${process.env.PATH}` };
  const daemon = await at.daemon([], env);
  const lines = () => (existsSync(notices) ? readFileSync(notices, 'utf8').split('\n') : []);
  await expect.poll(lines).toContain('/run/notify READY=1');
  await expect.poll(lines).toContain('/run/notify WATCHDOG=1');
  daemon.kill('SIGTERM');
  await daemon.ended;
  expect(lines()).toContain('/run/notify STOPPING=1');
});
