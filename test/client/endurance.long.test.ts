import { expect, test } from 'vitest';
import { clientOf } from './client-of.ts';
import {
  dropBeforeAnswer,
  dropDuringAnswer,
  json,
  scriptedService,
  silence,
  text,
  whoami,
} from './scripted-service.ts';

function unhandledRejections(): { seen: unknown[] } & Disposable {
  const seen: unknown[] = [];
  const note = (reason: unknown) => seen.push(reason);
  const warn = (warning: Error) => seen.push(warning);
  process.on('unhandledRejection', note).on('warning', warn);
  return {
    seen,
    [Symbol.dispose]: () => {
      process.off('unhandledRejection', note).off('warning', warn);
    },
  };
}

test('10,000 calls one after another share their connections and leave nothing behind', async () => {
  using unhandled = unhandledRejections();
  await using service = await scriptedService(json(200, whoami));
  const client = clientOf(service);
  const controller = new AbortController();
  for (let call = 0; call < 10_000; call += 1) {
    await client.call('auth.whoami', {}, { signal: controller.signal });
  }
  expect(service.received).toHaveLength(10_000);
  // A call that comes in the very moment the last one ended may find its connection not yet free.
  expect(service.connected).toBeLessThanOrEqual(2);
  await client[Symbol.asyncDispose]();
  await expect.poll(() => service.open.size).toBe(0);
  expect(unhandled.seen).toEqual([]);
});

test('faults, aborts and closing among many calls at once leave no connection, no unhandled rejection, no warning', async () => {
  using unhandled = unhandledRejections();
  const faults = [
    dropBeforeAnswer,
    dropDuringAnswer('{"a":1}'),
    text(200, '<h1>'),
    silence,
    json(200, whoami),
  ];
  let next = 0;
  await using service = await scriptedService((response, received) => {
    next += 1;
    faults[next % faults.length]?.(response, received);
  });
  const client = clientOf(service, { retry: { attempts: 2 } });
  const calls = Array.from({ length: 200 }, (_, index) => {
    const controller = new AbortController();
    const settled = Promise.allSettled([client.call('auth.whoami', {}, { signal: controller.signal })]);
    return { settled, abort: () => index % 2 === 0 && controller.abort() };
  });
  await expect.poll(() => next).toBeGreaterThan(200);
  for (const { abort } of calls) abort();
  await client[Symbol.asyncDispose]();
  await Promise.all(calls.map(({ settled }) => settled));
  await expect.poll(() => service.open.size).toBe(0);
  expect(unhandled.seen).toEqual([]);
});
