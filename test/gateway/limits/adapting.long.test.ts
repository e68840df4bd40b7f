import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { ModelLimits } from '../../../src/gateway/limits/model-limits.ts';
import { openGateway } from '../../../src/gateway/open-gateway.ts';
import { Limits } from '../../../src/ledger/limits.ts';
import { ModelConfig } from '../../../src/suite/model-config.ts';
import { type Asked, askModel } from './ask-model.ts';
import { limitedServer } from './limited-server.ts';

const timeout = 60_000;
const patiently = { timeout: 40_000, interval: 50 };

function gatewayTo(url: string, most: number, limits: ModelLimits) {
  return openGateway({
    models: {
      limited: ModelConfig.parse({ wire: 'openai-chat', baseUrl: url, maxParallel: { auto: true, most } }),
    },
    env: {},
    clock: systemClock,
    limits,
    scripted: () => {
      throw new Error('no scripted model here');
    },
  });
}

function folder() {
  const path = mkdtempSync(join(tmpdir(), 'offsite-limits-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
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
    using at = folder();
    using stored = new Limits(at.path);
    using limits = new ModelLimits(systemClock, stored);
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
    // What is kept of it is bounded, and says how the limit moved.
    const moves = stored.moves(0, Date.now());
    expect(moves.length).toBeGreaterThanOrEqual(2);
    expect(moves.length).toBeLessThanOrEqual(500);
    expect(moves.map(({ why }) => why)).toContain(beyond === 'refuses' ? 'refused' : 'waiting');
    expect(stored.all()).toMatchObject([{ model: 'limited', most: 16 }]);
  },
);

test('two agents of one machine share the limit, and together stay within it', { timeout }, async () => {
  await using server = await limitedServer({ capacity: 100, beyond: 'queues', firstMs: 20, restMs: 100 });
  using at = folder();
  using stored = new Limits(at.path);
  const start = (atATime: number) =>
    fork(fileURLToPath(new URL('./agent-process.ts', import.meta.url)), [
      at.path,
      server.url,
      '6',
      String(atATime),
    ]);
  const stop = async (agent: ChildProcess): Promise<Asked> => {
    const answer = once(agent, 'message');
    agent.send('stop');
    const [asked] = await answer;
    return asked as Asked;
  };
  const first = start(10);
  const shared = (model: Limits) => model.all()[0];
  await vi.waitFor(() => expect(shared(stored)).toMatchObject({ limit: 6 }), patiently);
  const before = server.answered;
  const second = start(10);
  await vi.waitFor(() => expect(shared(stored)?.inFlight).toBeGreaterThan(12), patiently);
  const since = server.answered;
  expect(since).toBeGreaterThan(before);
  await vi.waitFor(() => expect(server.answered).toBeGreaterThan(since + 150), patiently);
  const [ofFirst, ofSecond] = await Promise.all([stop(first), stop(second)]);
  expect([ofFirst.lost, ofSecond.lost]).toEqual([0, 0]);
  // The second one began later, and has had half of the permits since.
  expect(ofSecond.answers).toBeGreaterThan(50);
  expect(server.peak).toBeLessThanOrEqual(6);
  // Both have given their permits back.
  expect(shared(stored)).toMatchObject({ inFlight: 0 });
});

test('the permits of an agent that was killed come back', { timeout }, async () => {
  await using server = await limitedServer({ capacity: 100, beyond: 'queues', firstMs: 20, restMs: 100 });
  using at = folder();
  using stored = new Limits(at.path);
  const script = fileURLToPath(new URL('./agent-process.ts', import.meta.url));
  const killed = fork(script, [at.path, server.url, '1', '3']);
  await vi.waitFor(() => expect(server.answered).toBeGreaterThan(3), patiently);
  killed.kill('SIGKILL');
  await once(killed, 'exit');
  using limits = new ModelLimits(systemClock, stored);
  await using gateway = gatewayTo(server.url, 1, limits);
  const ending = new AbortController();
  const before = server.answered;
  const asking = askModel(gateway, { atATime: 1, requests: 2, until: ending.signal });
  await vi.waitFor(() => expect(server.answered).toBeGreaterThan(before + 2), patiently);
  ending.abort();
  expect(await asking).toMatchObject({ lost: 0 });
});

test('a store that fails does not stop the trials', { timeout }, async () => {
  await using server = await limitedServer({ capacity: 4, beyond: 'refuses', firstMs: 5, restMs: 20 });
  const notes: string[] = [];
  const broken = {
    change: () => {
      throw new Error('the disk is full');
    },
    moved: () => undefined,
  };
  using limits = new ModelLimits(systemClock, broken, (note) => notes.push(note));
  await using gateway = gatewayTo(server.url, 8, limits);
  const ending = new AbortController();
  const asking = askModel(gateway, { atATime: 6, requests: 5, until: ending.signal });
  await vi.waitFor(() => expect(server.answered).toBeGreaterThan(60), patiently);
  ending.abort();
  expect(await asking).toMatchObject({ lost: 0 });
  expect(notes).toEqual(['the limit of the model limited is not shared: the disk is full']);
});
