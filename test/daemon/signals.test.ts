import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openDaemonPlace } from './daemon-place.ts';
import { held, letGo } from './let-go.ts';

test('the first SIGTERM drains: what runs ends and is reported, what waits stays queued for the next daemon', async () => {
  await using at = await openDaemonPlace();
  at.configure({ profiles: { worker: { run: held } }, concurrency: 1 });
  await at.queue(['a', 'b']);
  const daemon = await at.daemon();
  const { running } = await at.once(({ running }) => running.some(({ phase }) => phase === 'harness'));
  daemon.kill('SIGTERM');
  await daemon.printed(
    /the daemon is draining: it waits for 1 trial to end, .*about 60 s at most; then it ends/,
  );
  expect((await at.command('daemon', 'status')).stdout).toMatch(/^draining {2}it waits for 1 trial to end/m);
  const late = { suite: { id: 'late', prompt: 'Do it.' }, cases: [{ id: 'late', verify: 'true' }] };
  const worker = { name: 'worker', model: 'none', harness: 'command', profile: 'worker' };
  const file = at.place.write('late.json', JSON.stringify({ ...late, variants: [worker] }));
  expect((await at.command('daemon', 'enqueue', file)).stdout).toContain(
    'the daemon is draining and takes up nothing more: the next one runs the suite',
  );
  rmSync(join(at.place.dataFolder, 'queue'), { recursive: true });
  await letGo(running[0]?.run ?? '');
  const { exitCode, stderr } = await daemon.ended;
  expect(exitCode, stderr).toBe(0);
  const statuses = [];
  for (const id of ['a', 'b']) statuses.push((await at.runs(id))[0]?.trials?.[0]?.status);
  expect(statuses.toSorted()).toEqual(['queued', 'reported']);
  at.configure();
  expect((await at.drained()).exitCode).toBe(0);
  for (const id of ['a', 'b']) {
    expect((await at.runs(id))[0]?.trials?.[0]?.status).toBe('reported');
  }
});

test('the second SIGTERM puts trials that run back, and the next daemon runs them', async () => {
  await using at = await openDaemonPlace();
  at.configure({ profiles: { worker: { run: held } } });
  await at.queue(['a']);
  const daemon = await at.daemon();
  await at.once(({ running }) => running.some(({ phase }) => phase === 'harness'));
  daemon.kill('SIGTERM');
  await daemon.printed(/the daemon is draining/);
  // Twice within a second is taken for one that came by two ways.
  await daemon.printed(/a second signal, later than 1 s, ends the running trials/);
  await delay(1_500);
  daemon.kill('SIGTERM');
  expect(await daemon.ended).toMatchObject({ exitCode: 130 });
  expect((await at.runs('a'))[0]?.trials?.[0]?.status).toBe('queued');
  at.configure();
  expect((await at.drained()).exitCode).toBe(0);
  expect((await at.runs('a'))[0]?.trials?.[0]?.status).toBe('reported');
});
