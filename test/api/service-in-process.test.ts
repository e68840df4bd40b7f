import { afterAll, beforeAll, expect, test } from 'vitest';
import { transportTo } from '../../src/api/service-access.ts';
import { systemClock } from '../../src/base/clock.ts';
import { type Client, createClient } from '../../src/client/client.ts';
import { openTestService, report, startRequest, type TestService } from '../service/test-service.ts';

let service: TestService;
let client: Client;
beforeAll(() => {
  service = openTestService();
  const transport = transportTo(service.service);
  client = createClient({ url: 'http://localhost', transport, apiKey: service.key, clock: systemClock });
});
afterAll(async () => {
  await client[Symbol.asyncDispose]();
  await service[Symbol.asyncDispose]();
});

test('a service in this process answers as over HTTP, also with a page that it sends in pieces', async () => {
  const { runs } = await client.call('evals.start', startRequest() as never);
  const verifySteps = [{ command: 'é'.repeat(1_000_000), exitCode: 0 }];
  const outcome = { passed: true, commandCount: 1, verifySteps };
  await client.call('evals.reportTrial', report(runs[0]?.id, 0, outcome) as never);
  const { runs: listed } = await client.page({ caseId: 'csv' }, { parts: 'results' });
  expect(JSON.stringify(listed).length).toBeGreaterThan(1_000_000);
  expect(client.origin).toBe('the embedded service');
});

test('a service in this process refuses what it refuses over HTTP', async () => {
  await expect(client.call('evals.start', startRequest({ local: false }) as never)).rejects.toMatchObject({
    status: 409,
  });
  const transport = transportTo(service.service);
  await using stranger = createClient({
    url: 'http://localhost',
    transport,
    clock: systemClock,
    apiKey: 'a-key-that-nobody-made',
  });
  await expect(stranger.call('auth.whoami', {})).rejects.toMatchObject({ status: 401 });
});

test('a call of a service in this process ends when its caller stops waiting', async () => {
  const never = { answer: () => new Promise<never>(() => undefined) };
  await using waiting = createClient({
    url: 'http://localhost',
    transport: transportTo(never),
    clock: systemClock,
    apiKey: service.key,
  });
  const stopping = new AbortController();
  const asked = waiting.call('auth.whoami', {}, { signal: stopping.signal });
  stopping.abort(new Error('enough'));
  await expect(asked).rejects.toThrow('enough');
});
