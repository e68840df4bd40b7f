import { expect, test } from 'vitest';
import { Semaphore } from '../../src/base/semaphore.ts';
import { pacing } from '../../src/gateway/pacing.ts';
import { gatewayClock } from './gateway-clock.ts';
import { place, question, sessionRequest } from './gateway-fixture.ts';
import { sandboxOf } from './sandbox.ts';
import { chatAnswer, json, type Step, type TestUpstream, testUpstreamAt } from './test-upstream.ts';

const good = json(200, chatAnswer);
const limited = json(429, { error: { message: 'slow down' } }, { 'retry-after': '7' });
const drop: Step = (response) => response.socket?.destroy();

test.for([
  ['429', limited, 'it answered 429'],
  ['500', json(500, {}), 'it answered 500'],
  ['503', json(503, {}), 'it answered 503'],
  ['529', json(529, {}), 'it answered 529'],
  ['a connection that is dropped', drop, 'the connection to'],
] as const)('%s is tried again unseen by the sandbox, and recorded', async ([, step, reason]) => {
  await using at = await place({}, step, good);
  expect(await at.sandbox.ask({ headers: at.agent, body: question })).toMatchObject({ status: 200 });
  const [first, second] = at.upstream.received;
  expect(second?.body.equals(first?.body ?? Buffer.alloc(0))).toBe(true);
  const account = await at.session.account();
  expect(account.exchanges).toMatchObject([{ status: 200, failure: undefined }]);
  expect(account.exchanges[0]?.failedTries).toMatchObject([{ reason: expect.stringContaining(reason) }]);
  expect(account.usage).toMatchObject([{ requests: 1, usage: { inputTokens: 100 } }]);
  expect(account.failure).toBeUndefined();
});

test('a retry waits as long as the upstream asks for, plus some jitter', async () => {
  await using at = await place({ random: 0 }, limited, good);
  await at.sandbox.ask({ headers: at.agent, body: question });
  expect(at.clock.waits).toEqual([7000]);
});

test('an upstream that asks for more time than a trial has is passed on at once', async () => {
  const busy = json(429, { error: { message: 'tomorrow' } }, { 'retry-after': '86400' });
  await using at = await place({}, busy);
  const answer = await at.sandbox.ask({ headers: at.agent, body: question });
  expect(answer).toMatchObject({ status: 429, body: { error: { message: 'tomorrow' } } });
  expect(at.upstream.received).toHaveLength(1);
});

test.for([
  ['a request that is wrong', json(400, { error: { message: 'too long' } })],
  ['a key that is refused', json(401, { error: { message: 'bad key' } })],
  ['a quota that is used up', json(429, { error: { code: 'insufficient_quota', message: 'pay' } })],
  ['an upstream that says not to', json(500, { error: { message: 'no' } }, { 'x-should-retry': 'false' })],
] as const)('%s is not tried again, and passed on as it is', async ([, step]) => {
  await using at = await place({}, step);
  const answer = await at.sandbox.ask({ headers: at.agent, body: question });
  expect(at.upstream.received).toHaveLength(1);
  expect(answer.body.error.message).toBeTypeOf('string');
  const { failure } = await at.session.account();
  expect(failure).toBe(`big: answered ${answer.status}: ${answer.body.error.message}`);
});

test('a failure is passed on after five attempts, and tells the client not to retry', async () => {
  await using at = await place({}, json(500, { error: { message: 'broken' } }));
  const answer = await at.sandbox.ask({ headers: at.agent, body: question });
  expect(answer).toMatchObject({ status: 500, body: { error: { message: 'broken' } } });
  expect(answer.headers['x-should-retry']).toBe('false');
  expect(at.upstream.received).toHaveLength(5);
  expect((await at.session.account()).exchanges[0]?.failedTries).toHaveLength(4);
});

test('an unreachable model is an infrastructure failure, answered in the wire with a hint', async () => {
  await using at = await place({}, good);
  await at.upstream[Symbol.asyncDispose]();
  const answer = await at.sandbox.ask({ headers: at.agent, body: question });
  expect(answer).toMatchObject({
    status: 502,
    body: { error: { code: 'model_unreachable', type: 'server_error' } },
  });
  expect(answer.body.error.message).toContain('Check that it is running there');
  const account = await at.session.account();
  expect(account.failure).toContain('ECONNREFUSED');
  expect(account.usage).toMatchObject([{ usage: {} }]);
});

test('a server that listens a moment later than it is asked gets the request', async () => {
  const clock = gatewayClock();
  const begun: Promise<TestUpstream>[] = [];
  const sleep: typeof clock.sleep = async (ms, signal) => {
    if (ms === 1_000) begun.push(testUpstreamAt(at.upstream.port, good));
    await Promise.all(begun);
    await clock.sleep(ms, signal);
  };
  await using at = await place({ gateway: { clock: { ...clock, sleep } } }, good);
  await at.upstream[Symbol.asyncDispose]();
  expect(await at.sandbox.ask({ headers: at.agent, body: question })).toMatchObject({ status: 200 });
  expect(begun).toHaveLength(1);
  await using _ = await begun[0];
});

test('bytes that are not HTTP are a connection that failed', async () => {
  await using at = await place({}, (response) => response.socket?.end('SSH-2.0-hello\r\n'));
  expect(await at.sandbox.ask({ headers: at.agent, body: question })).toMatchObject({ status: 502 });
});

test('trials of one model back off together', async () => {
  await using at = await place({ random: 0 }, limited, good);
  await using other = at.gateway.open(sessionRequest());
  await using sandbox = sandboxOf(other);
  await at.sandbox.ask({ headers: at.agent, body: question });
  const quiet = at.clock.waits.length;
  await sandbox.ask({ headers: { authorization: `Bearer ${other.token('agent')}` }, body: question });
  // The quiet is over by then; nobody waits twice.
  expect(at.clock.waits).toHaveLength(quiet);
  expect(at.upstream.received).toHaveLength(3);
});

test('no more requests are sent to a model at a time than it takes, over all trials', async () => {
  const total = 20;
  const pending: (() => void)[] = [];
  let most = 0;
  let left = total;
  await using at = await place({ model: { maxParallel: 3 } }, (response, received) => {
    pending.push(() => good(response, received));
    most = Math.max(most, pending.length);
    // Nobody is answered until as many have come as may.
    if (pending.length < Math.min(3, left)) return;
    left -= pending.length;
    for (const answer of pending.splice(0)) answer();
  });
  await using other = at.gateway.open(sessionRequest());
  await using sandbox = sandboxOf(other);
  const theirs = { authorization: `Bearer ${other.token('agent')}` };
  const asked = Array.from({ length: total }, (_, index) =>
    index % 2
      ? at.sandbox.ask({ headers: at.agent, body: question })
      : sandbox.ask({ headers: theirs, body: question }),
  );
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(Array(total).fill(200));
  expect(most).toBe(3);
});

test('all requests wait during a back-off, and a second failure at the same time does not extend it', async () => {
  const clock = gatewayClock();
  const reported: [ms: number, why: string][] = [];
  const waits = (...wait: [number, string]) => void reported.push(wait);
  const way = pacing(new Semaphore(Number.POSITIVE_INFINITY), { clock, random: () => 0, waits });
  const { signal } = new AbortController();
  const [first, second] = [await way.acquire(signal), await way.acquire(signal)];
  first.backOff(10_000, 'it answered 429');
  second.backOff(10_000, 'it answered 429');
  for (const one of [first, second]) one.release();
  const third = await way.acquire(signal);
  expect(clock.waits).toEqual([10_000]);
  // A short wait is not told.
  third.backOff(1_000, 'it answered 503');
  expect(reported).toEqual([[10_000, 'it answered 429']]);
});

test('a canceled wait passes its permit to the next request', async () => {
  const way = pacing(new Semaphore(1), { clock: gatewayClock(), random: () => 0 });
  const { signal } = new AbortController();
  const impatient = new AbortController();
  const held = await way.acquire(signal);
  const given = way.acquire(impatient.signal);
  const next = way.acquire(signal);
  impatient.abort(new Error('enough'));
  await expect(given).rejects.toThrow('enough');
  held.release();
  held.release();
  (await next).release();
  await way.acquire(signal);
});
