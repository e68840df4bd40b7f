import { expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { ModelLimits } from '../../../src/gateway/limits/model-limits.ts';
import { openGateway } from '../../../src/gateway/open-gateway.ts';
import { ModelConfig } from '../../../src/suite/model-config.ts';
import { askModel } from './ask-model.ts';
import { limitedServer } from './limited-server.ts';

const timeout = 60_000;
const patiently = { timeout: 40_000, interval: 50 };

function gatewayTo(url: string, most: number, limits: ModelLimits) {
  const maxParallel = { auto: true, most };
  return openGateway({
    models: { limited: ModelConfig.parse({ wire: 'openai-chat', baseUrl: url, maxParallel }) },
    env: {},
    clock: systemClock,
    limits,
    scripted: () => {
      throw new Error('no scripted model here');
    },
  });
}

test.for([
  ['refuses', undefined],
  ['refuses', 1],
  ['queues', undefined],
] as const)(
  'a limit follows a model that %s what is too much (Retry-After: %s), and no trial is lost',
  { timeout },
  async ([beyond, retryAfter]) => {
    const times = { firstMs: 10, restMs: 60, ...(retryAfter !== undefined && { retryAfter }) };
    await using server = await limitedServer({ capacity: 6, beyond, ...times });
    const limits = new ModelLimits(systemClock);
    await using gateway = gatewayTo(server.url, 16, limits);
    const ending = new AbortController();
    const asking = askModel(gateway, { atATime: 20, requests: 5, until: ending.signal });
    const limit = () => gateway.limitOf('limited')?.limit ?? 0;
    await vi.waitFor(() => expect(limit()).toBeGreaterThanOrEqual(5), patiently);
    server.capacity = 2;
    await vi.waitFor(() => expect(limit()).toBeLessThanOrEqual(4), patiently);
    if (retryAfter === undefined) {
      // Otherwise what was refused is tried again only after many times what the model asked to wait.
      server.capacity = 12;
      await vi.waitFor(() => expect(limit()).toBeGreaterThanOrEqual(10), patiently);
    }
    ending.abort();
    const asked = await asking;
    expect(asked.lost).toBe(0);
    expect(asked.trials).toBeGreaterThanOrEqual(20);
    if (beyond === 'refuses') expect(asked.refusals).toBeGreaterThan(0);
    expect(server.peak).toBeLessThanOrEqual(16);
    expect(gateway.limits()).toMatchObject([{ name: 'limited', most: 16, wanted: 0 }]);
  },
);

test('two gateways with the same limits stay within them together', { timeout }, async () => {
  await using server = await limitedServer({ capacity: 100, beyond: 'queues', firstMs: 20, restMs: 100 });
  const limits = new ModelLimits(systemClock);
  await using before = gatewayTo(server.url, 6, limits);
  await using after = gatewayTo(server.url, 6, limits);
  const ending = new AbortController();
  const both = [before, after].map((gateway) =>
    askModel(gateway, { atATime: 10, requests: 5, until: ending.signal }),
  );
  await vi.waitFor(() => expect(server.answered).toBeGreaterThan(100), patiently);
  ending.abort();
  expect((await Promise.all(both)).map(({ lost }) => lost)).toEqual([0, 0]);
  expect(server.peak).toBeLessThanOrEqual(6);
});

test('two processes at one model that refuses what is too much lose no trial', {
  timeout,
}, async () => {
  await using server = await limitedServer({ capacity: 4, beyond: 'refuses', firstMs: 10, restMs: 60 });
  await using one = gatewayTo(server.url, 16, new ModelLimits(systemClock));
  await using other = gatewayTo(server.url, 16, new ModelLimits(systemClock));
  const ending = new AbortController();
  const both = [one, other].map((gateway) =>
    askModel(gateway, { atATime: 6, requests: 5, until: ending.signal }),
  );
  await vi.waitFor(() => expect(server.answered).toBeGreaterThan(150), patiently);
  ending.abort();
  const asked = await Promise.all(both);
  expect(asked.map(({ lost }) => lost)).toEqual([0, 0]);
  for (const { answers } of asked) expect(answers).toBeGreaterThan(0);
});
