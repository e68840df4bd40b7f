import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { listen } from '../../src/service/listen.ts';
import { createShares } from '../../src/service/request/shares.ts';
import { openTestService } from './test-service.ts';

const stands = { now: () => 0 };
const MiB = 1024 * 1024;

test('a key may have only so many requests and bytes in flight, whatever other keys have', () => {
  const shares = createShares(stands);
  const held = Array.from({ length: 256 }, () => shares.enter('one'));
  expect(() => shares.enter('one')).toThrow(/256 requests in flight/);
  shares.enter('other').hold(8 * MiB);
  for (const one of held) one[Symbol.dispose]();
  for (let large = 0; large < 4; large += 1) shares.enter('one').hold(8 * MiB);
  const next = shares.enter('one');
  expect(() => next.hold(1)).toThrow(expect.objectContaining({ status: 429 }));
  expect(() => next.hold(1)).toThrow(expect.objectContaining({ headers: { 'retry-after': '1' } }));
});

test('the small steps of another key come before the rest of a key that has many', async () => {
  const shares = createShares(stands);
  const order: string[] = [];
  const many = Array.from({ length: 50 }, () => shares.turn('one', 10).then(() => order.push('one')));
  await shares.turn('other', 10).then(() => order.push('other'));
  expect(order.indexOf('other')).toBe(16);
  await Promise.all(many);
});

test('large steps are taken one in a turn, by keys in turn, and small ones do not wait for them', async () => {
  const shares = createShares(stands);
  const order: string[] = [];
  const large = (key: string) => shares.turn(key, MiB).then(() => order.push(key));
  const all = [large('one'), large('one'), large('one'), large('other')];
  await shares.turn('small', 10).then(() => order.push('small'));
  await Promise.all(all);
  expect(order.filter((key) => key !== 'small')).toEqual(['one', 'other', 'one', 'one']);
  expect(order.indexOf('small')).toBeLessThan(2);
});

test('a key with a start of 2,000 runs and one that only reads are both answered', async () => {
  await using service = openTestService();
  const cases = Array.from({ length: 100 }, (_, index) => ({ id: `c${index}`, name: 'C' }));
  const variants = Array.from({ length: 20 }, (_, index) => ({ model: `m${index}` }));
  const start = { suite: { id: 's', name: 'S', prompt: 'p' }, cases, variants, trials: 1, local: true };
  let waits = 0;
  const started = service.succeed('evals.start', start);
  const other = service.keyFor('Other');
  for (; waits < 3; waits += 1) await service.succeed('auth.whoami', {}, other);
  expect((await started).runs).toHaveLength(2_000);
});

test('silent connections are closed where a new one needs their place', async () => {
  const { port, close } = await listen(
    () => new Response('here'),
    { limits: { connections: 20 } },
    systemClock,
  );
  const open = async (): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  };
  const silent: Socket[] = [];
  for (let count = 0; count < 60; count += 1) silent.push(await open());
  expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('here');
  await expect
    .poll(() => silent.filter(({ destroyed, readableEnded }) => destroyed || readableEnded).length)
    .toBeGreaterThan(30);
  for (const socket of silent) socket.destroy();
  await setImmediate();
  await close(0);
});
