import { expect, test } from 'vitest';
import { Loop, Watchdog } from '../../src/agent/loop.ts';
import { WaitingRuns } from '../../src/agent/worker/waiting-runs.ts';
import { handClock, settled } from '../agent/test-clock.ts';

/** A watched loop by a clock that stands still. */
function loopOf(step: () => Promise<number>) {
  const clock = handClock();
  let monotonic = 0;
  const watchdog = new Watchdog({ monotonic: () => monotonic });
  const failures: unknown[] = [];
  const failed = (error: unknown) => failures.push(error);
  const loop = new Loop({ name: 'poll', clock, watchdog, stepMs: 60_000, step, failed });
  const stop = new AbortController();
  const running = loop.run(stop.signal);
  return {
    clock,
    watchdog,
    failures,
    loop,
    async pass(ms: number) {
      monotonic += ms;
      await clock.pass(ms);
    },
    async end() {
      stop.abort();
      await running;
    },
  };
}

test('a loop goes round when its time has come, or when it is woken', async () => {
  let rounds = 0;
  const { pass, loop, end } = loopOf(async () => {
    rounds++;
    return 10_000;
  });
  await settled();
  await pass(10_000);
  expect(rounds).toBe(2);
  loop.wake();
  await settled();
  expect(rounds).toBe(3);
  await end();
});

test('a step that fails does not end its loop', async () => {
  const { pass, failures, end } = loopOf(() => Promise.reject(new Error('no')));
  await settled();
  await pass(5_000);
  await pass(5_000);
  expect(failures).toHaveLength(3);
  await end();
});

test('a loop without a way to tell failures ends with the first one', async () => {
  const step = () => Promise.reject(new Error('no'));
  const loop = new Loop({ name: 'once', clock: handClock(), step });
  await expect(loop.run(new AbortController().signal)).rejects.toThrow('no');
});

test('a loop may wait before its first round, and is not stuck meanwhile or however long a round takes', async () => {
  const clock = handClock();
  let monotonic = 0;
  const watchdog = new Watchdog({ monotonic: () => monotonic });
  let rounds = 0;
  const step = () => {
    rounds++;
    return new Promise<number>(() => undefined);
  };
  const loop = new Loop({ name: 'lease', clock, watchdog, firstMs: 10_000, step });
  void loop.run(new AbortController().signal);
  await settled();
  expect(rounds).toBe(0);
  await clock.pass(10_000);
  expect(rounds).toBe(1);
  monotonic = 86_400_000;
  expect(watchdog.stuck()).toEqual([]);
});

test('a loop that hangs in a step is told of; one that waits for its next round is not', async () => {
  const hanging = loopOf(() => new Promise(() => undefined));
  const waiting = loopOf(async () => 600_000);
  await settled();
  await hanging.pass(300_000);
  await waiting.pass(300_000);
  expect(hanging.watchdog.stuck()).toEqual(['poll']);
  expect(waiting.watchdog.stuck()).toEqual([]);
  await waiting.end();
});

test('setting the wall clock makes no loop look stuck, and no wait longer', async () => {
  let rounds = 0;
  const { clock, watchdog, pass, end } = loopOf(async () => {
    rounds++;
    return 10_000;
  });
  await settled();
  clock.set(clock.now() + 86_400_000);
  await settled();
  expect(watchdog.stuck()).toEqual([]);
  clock.set(0);
  await pass(10_000);
  expect(rounds).toBe(2);
  await end();
});

test('a run that waits for the machine is tried again after a while or when it changed, one that waits for configuration is not', () => {
  let now = 0;
  const waiting = new WaitingRuns({ monotonic: () => now });
  const run = { kind: 'waiting', run: 'r', case: 'a', reason: 'no image' } as const;
  expect(waiting.add(1, run, 60_000)).toBe(true);
  expect(waiting.add(2, { ...run, reason: 'no such profile' })).toBe(true);
  expect(waiting.add(3, { ...run, reason: 'no such profile' })).toBe(false);
  expect(waiting.keys()).toEqual([1, 2, 3]);
  now = 20_000;
  // Who looks is told when it is tried again, and a worker sleeps no longer.
  expect(waiting.all().map(({ askedAgainInMs }) => askedAgainInMs)).toEqual([40_000, undefined, undefined]);
  expect(waiting.nextMs).toBe(40_000);
  now = 61_000;
  expect(waiting.keys()).toEqual([2, 3]);
  waiting.add(1, run, 60_000);
  waiting.retry();
  expect(waiting.keys()).toEqual([2, 3]);
  waiting.clear();
  expect(waiting.keys()).toEqual([]);
});
