import fc from 'fast-check';
import { expect, test } from 'vitest';
import { defaultRetryLimits } from '../../src/client/options.ts';
import { retryAfter, retryBudget, waitBefore } from '../../src/client/retry.ts';
import { clientOf, errorOf } from './client-of.ts';
import { json, scriptedService, text, whoami } from './scripted-service.ts';
import { testClock } from './test-clock.ts';

test('429 is waited out for as long as Retry-After asks, in seconds or until a date, and at most a minute', async () => {
  await using service = await scriptedService(
    text(429, '', { 'retry-after': '3' }),
    // Ten seconds by the service's own clock, which need not be ours.
    text(429, '', { 'retry-after': 'Tue, 05 May 2020 10:00:10 GMT', date: 'Tue, 05 May 2020 10:00:00 GMT' }),
    text(429, '', { 'retry-after': '86400' }),
    text(429, '', { 'retry-after': 'soon' }),
    json(200, whoami),
  );
  const clock = testClock();
  await using client = clientOf(service, { clock, random: () => 0 });
  await client.call('auth.whoami', {});
  expect(clock.waits).toEqual([3000, 10_000, 60_000, 0]);
});

test('a wait is somewhere between nothing and a bound that doubles up to the longest', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 50 }),
      fc.double({ min: 0, max: 0.999999, noNaN: true }),
      (attempt, random) => {
        const wait = waitBefore(attempt, undefined, defaultRetryLimits, () => random);
        const bound = Math.min(15_000, 500 * 2 ** (attempt - 1));
        expect(wait).toBeGreaterThanOrEqual(0);
        expect(wait).toBeLessThanOrEqual(bound);
        expect(wait).toBe(Math.round(random * bound));
      },
    ),
  );
});

test('Retry-After never yields less than nothing, nor a number that is none', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.integer().map(String), fc.date().map(String)), (value) => {
      const wait = retryAfter({ 'retry-after': value }, Date.now());
      expect(wait === undefined || wait >= 0).toBe(true);
    }),
  );
});

test('a service that is down is asked once a call when the budget is spent, and as often as before when it is back', async () => {
  let down = true;
  await using service = await scriptedService((response, received) =>
    (down ? text(500, '') : json(200, whoami))(response, received),
  );
  await using client = clientOf(service, { retry: { attempts: 3, budget: 3 } });
  const attemptsOfACall = async () => {
    const before = service.received.length;
    await client.call('auth.whoami', {}).catch(() => undefined);
    return service.received.length - before;
  };
  expect(await attemptsOfACall()).toBe(3);
  expect(await attemptsOfACall()).toBe(2);
  expect(await attemptsOfACall()).toBe(1);
  expect(await attemptsOfACall()).toBe(1);
  down = false;
  for (let call = 0; call < 5; call += 1) expect(await attemptsOfACall()).toBe(1);
  down = true;
  expect(await attemptsOfACall()).toBe(3);
});

test('the budget never grows past its size', () => {
  const budget = retryBudget(1);
  budget.restore();
  expect([budget.take(), budget.take()]).toEqual([true, false]);
});

test('the last of the attempts is the one that is reported', async () => {
  await using service = await scriptedService(
    text(502, ''),
    json(500, { _tag: 'InternalError', message: 'oops' }),
  );
  const clock = testClock();
  await using client = clientOf(service, { clock });
  const error = await errorOf(client.call('auth.whoami', {}));
  expect(error).toMatchObject({
    name: 'ServiceRefusal',
    tag: 'InternalError',
    kind: 'infrastructure',
    attempts: 6,
  });
  expect(error.message).toBe('auth.whoami, attempt 6: the service answered 500 InternalError: oops');
  expect(clock.waits).toEqual([250, 500, 1000, 2000, 4000]);
});
