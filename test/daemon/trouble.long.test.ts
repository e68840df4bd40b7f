import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { cuttingProxy } from '../engine/cutting-proxy.ts';
import { openDaemonPlace } from './daemon-place.ts';

test('a run that can never be run here stops no other, and is told with its reason', async () => {
  await using at = await openDaemonPlace();
  at.configure();
  const source = { kind: 'empty' };
  const [poisoned] = await at.queue(['poisoned'], { case: { source, verify: 'a tarball' } });
  await at.queue(['good', 'malformed']);
  await at.queue(['malformed'], { case: { verify: 'broken on its way' } });
  at.service.alter = (_, body) =>
    body
      .replace('"kind":"empty"},"verify":"a tarball"', '"kind":"tarball"},"verify":"a tarball"')
      .replace('"broken on its way"', '{"not": ["a", "text"]}');
  const daemon = await at.daemon();
  const { parked } = await at.once(({ finished, parked }) => finished.passed === 2 && parked.length === 2);
  expect(parked.map((run) => run.reason)).toContainEqual(
    expect.stringMatching(/the setup of run \S+ is not as documented: verify: /),
  );
  const { stdout } = await at.command('daemon', 'status');
  expect(stdout).toMatch(/2 parked runs:\n(?:.*\n)? {2}poisoned · \S+ .*"tarball" is not implemented/);
  expect((await at.runs('poisoned'))[0]).toMatchObject({ id: poisoned, trials: [{ status: 'queued' }] });
  daemon.kill('SIGTERM');
  expect(await daemon.ended).toMatchObject({ exitCode: 0 });
  // For a program that drains the queue it is not done.
  expect(await at.drained()).toMatchObject({ exitCode: 3 });
});

test('runs of a variant that the configuration does not know wait with one message until it does', async () => {
  await using at = await openDaemonPlace();
  at.configure();
  const credentials = { harnessConnectionId: 'conn_17', sandboxConnectionId: 'local' };
  await at.queue(['a', 'b'], { variant: { credentials } });
  await at.queue(['c'], { variant: { model: 'gone' } });
  const daemon = await at.daemon();
  const { waiting } = await at.once(({ waiting }) => waiting.length === 3);
  const reasons = waiting.map(({ reason }) => reason).join('\n');
  expect(reasons).toContain('"conn_17" is not a harness');
  expect(reasons).toContain('"gone" is not a model of');

  at.place.write('offsite.yaml', 'profiles: [this, is, none]');
  daemon.kill('SIGHUP');
  await daemon.printed(/the configuration stays as it was/);
  at.configure({ connections: { harness: { command: 'conn_17' } }, dataFolder: 'elsewhere' });
  daemon.kill('SIGHUP');
  await daemon.printed(/"needRestart":\["dataFolder"\]/);
  at.configure({ connections: { harness: { command: 'conn_17' } } });
  daemon.kill('SIGHUP');
  // The daemon still runs with what is there again.
  await daemon.printed(/"needRestart":\[\]/);
  await at.once(({ finished, outbox }) => finished.passed === 2 && outbox.queued === 0);

  daemon.kill('SIGTERM');
  const { stderr } = await daemon.ended;
  const said = stderr.split('\n').filter((line) => /a run waits/.test(line) && /conn_17/.test(line));
  expect(said).toHaveLength(1);
});

test('it is not healthy while the engine is gone, and says so', async () => {
  await using at = await openDaemonPlace();
  at.configure();
  const proxy = await cuttingProxy();
  const daemon = await at.daemon(['--listen', '0'], { DOCKER_HOST: proxy.host });
  const [, url] = await daemon.printed(/"http":"(http:[^"]+)"/);
  const healthz = async () => (await fetch(`${url}/healthz`)).status;
  await expect.poll(healthz).toBe(200);
  await proxy[Symbol.asyncDispose]();
  await expect.poll(healthz).toBe(503);
  const { health } = await at.once(({ health }) => !health.ok);
  expect(health.troubles[0]).toContain('the engine: ');
});

test('a canceled run is named no more among the running trials', async () => {
  await using at = await openDaemonPlace();
  at.configure({ profiles: { worker: { run: 'sleep 100000' } } });
  const [run = ''] = await at.queue(['endless']);
  const daemon = await at.daemon();
  await at.once(({ running }) => running.some(({ phase }) => phase === 'harness'));
  await at.command('daemon', 'cancel', run);
  await at.once(({ running }) => running.length === 0);
  // The log names what runs after 15 s of silence.
  const named = daemon.printed(new RegExp(`"msg":"at work".*${run}|${run}.*"msg":"at work"`));
  expect(await Promise.race([named, setTimeout(17_000)])).toBeUndefined();
  daemon.kill('SIGTERM');
  // Or the end of what it prints would reject the promise above.
  await Promise.allSettled([daemon.ended, named]);
});
