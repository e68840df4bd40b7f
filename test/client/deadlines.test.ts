import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { clientOf, errorOf, startRequest } from './client-of.ts';
import { json, type Step, scriptedService, silence, whoami } from './scripted-service.ts';
import { testClock } from './test-clock.ts';

/** Sends a first byte of the body and then no more. */
const slowBody: Step = (response) =>
  response.writeHead(200, { 'content-type': 'application/json' }).write('{');

for (const [what, step] of Object.entries({ silence, 'a slow body': slowBody })) {
  test(`${what} is given up at the attempt's deadline, its connection closed, and asked again`, async () => {
    await using service = await scriptedService(step, json(200, whoami));
    const clock = testClock();
    await using client = clientOf(service, { clock });
    const answer = client.call('auth.whoami', {});
    await expect.poll(() => service.received.length).toBe(1);
    clock.expire(100_000);
    expect(await answer).toEqual(whoami);
    expect(service.received).toHaveLength(2);
    await expect.poll(() => service.open.size).toBe(1);
  });
}

test("at the call's deadline it is over, whatever attempts are left", async () => {
  await using service = await scriptedService(silence);
  const clock = testClock();
  await using client = clientOf(service, { clock });
  const error = errorOf(client.call('auth.whoami', {}, { deadlineMs: 300_000 }));
  await expect.poll(() => service.received.length).toBe(1);
  clock.expire(300_000);
  expect(await error).toMatchObject({
    name: 'DeadlineExceeded',
    code: 'CLIENT_CALL_DEADLINE',
    deadlineMs: 300_000,
  });
  expect((await error).message).toBe(
    'auth.whoami: no complete answer within 300 s, the deadline of the call',
  );
  expect(service.received).toHaveLength(1);
  await expect.poll(() => service.open.size).toBe(0);
});

test('a wait that would outlast the call is not begun: the last error comes at once', async () => {
  await using service = await scriptedService(
    json(503, { _tag: 'Busy', message: 'later' }, { 'retry-after': '30' }),
  );
  const clock = testClock();
  await using client = clientOf(service, { clock });
  const error = await errorOf(client.call('auth.whoami', {}, { deadlineMs: 20_000 + 100_000 }));
  expect(error).toMatchObject({ name: 'ServiceRefusal', tag: 'Busy', retryAfterMs: 30_000, attempts: 4 });
  expect(clock.waits).toEqual([30_250, 30_500, 31_000]);
});

test('a start that meets its deadline has an unknown outcome', async () => {
  await using service = await scriptedService(silence);
  const clock = testClock();
  await using client = clientOf(service, { clock });
  const error = errorOf(client.call('evals.start', startRequest));
  await expect.poll(() => service.received.length).toBe(1);
  clock.expire(100_000);
  expect(await error).toMatchObject({ name: 'UnknownOutcome', cause: { name: 'DeadlineExceeded' } });
});

test('aborting closes the connection and rejects with the reason', async () => {
  await using service = await scriptedService(silence, slowBody);
  await using client = clientOf(service);
  for (const requests of [1, 2]) {
    const controller = new AbortController();
    const reason = new Error('the user went home');
    const error = errorOf(client.call('auth.whoami', {}, { signal: controller.signal }));
    await expect.poll(() => service.received.length).toBe(requests);
    expect(service.open.size).toBe(1);
    controller.abort(reason);
    expect(await error).toBe(reason);
    await expect.poll(() => service.open.size).toBe(0);
  }
});

test('aborting a start in flight says that its outcome is unknown, and why', async () => {
  await using service = await scriptedService(silence);
  await using client = clientOf(service);
  const controller = new AbortController();
  const error = errorOf(client.call('evals.start', startRequest, { signal: controller.signal }));
  await expect.poll(() => service.received.length).toBe(1);
  controller.abort(new Error('the user went home'));
  expect(await error).toMatchObject({ name: 'UnknownOutcome', cause: { message: 'the user went home' } });
  expect((await error).message).toContain('the user went home');
});

test('a signal that has aborted already sends nothing', async () => {
  await using service = await scriptedService(json(200, whoami));
  await using client = clientOf(service);
  const reason = new Error('too late');
  expect(await errorOf(client.call('evals.start', startRequest, { signal: AbortSignal.abort(reason) }))).toBe(
    reason,
  );
  expect(service.received).toHaveLength(0);
});

test('aborting while it waits to ask again rejects with the reason', async () => {
  await using service = await scriptedService(json(500, { _tag: 'InternalError', message: '' }));
  const controller = new AbortController();
  const clock = testClock();
  const reason = new Error('enough');
  await using client = clientOf(service, {
    clock: {
      ...clock,
      async sleep(ms, signal) {
        if (ms < 100_000) controller.abort(reason);
        return clock.sleep(ms, signal);
      },
    },
  });
  expect(await errorOf(client.call('auth.whoami', {}, { signal: controller.signal }))).toBe(reason);
  expect(service.received).toHaveLength(1);
});

test('closing the client ends what is in flight, and a closed client says so', async () => {
  await using service = await scriptedService(silence);
  const client = clientOf(service);
  const inFlight = errorOf(client.call('auth.whoami', {}));
  await expect.poll(() => service.received.length).toBe(1);
  await client[Symbol.asyncDispose]();
  expect(await inFlight).toMatchObject({ code: 'CLIENT_CLOSED' });
  expect(await errorOf(client.call('auth.whoami', {}))).toMatchObject({ code: 'CLIENT_CLOSED' });
  await expect.poll(() => service.open.size).toBe(0);
});

test('a host that takes the connection but never finishes TLS is given up, and evals.start was certainly not sent', async () => {
  const mute = createServer();
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = mute.address() as AddressInfo;
    await using client = clientOf(
      { url: `https://127.0.0.1:${port}` },
      { deadlines: { connect: 50, attempt: 100_000, call: 1_000_000 }, retry: { attempts: 2 } },
    );
    const error = await errorOf(client.call('evals.start', startRequest));
    expect(error).toMatchObject({ code: 'CLIENT_UNREACHABLE', sent: false, attempts: 2 });
    expect(error.message).toMatch(/timeout/i);
  } finally {
    mute.close();
  }
});
