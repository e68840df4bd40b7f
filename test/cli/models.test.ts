import { afterEach, describe, expect, test, vi } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { json, testUpstream } from '../gateway/test-upstream.ts';
import { modelsIn } from './models/models-in-process.ts';
import { openPlace } from './place.ts';

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

/** Runs `offsite models …` in this process on a configuration of these models. */
async function models(config: string, args: string[], clock?: Clock) {
  using place = openPlace();
  place.write('offsite.yaml', config);
  return await modelsIn(place, args, clock);
}

const key = 'sk-a-secret-that-is-long-enough';

const configured = (port: number) => `
models:
  mine:
    wire: [openai-chat, anthropic-messages]
    baseUrl: http://127.0.0.1:${port}/v1
    model: upstream-name
    apiKeyEnv: MINE_API_KEY
    aliases: [other]
    record: full
    prices: { date: 2026-01-15, input: 1000, output: 2000 }
  played: { scripted: played.yaml }
`;

const fine = {
  model: 'upstream-name-2026',
  choices: [{ finish_reason: 'stop', message: { role: 'assistant', content: 'ready' } }],
  usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
};

describe('offsite models', () => {
  test('lists what is configured, and never a key', async () => {
    vi.stubEnv('MINE_API_KEY', key);
    const { stdout } = await models(configured(1), []);
    expect(stdout).toMatch(
      /^mine +openai-chat, anthropic-messages +http:\/\/127\.0\.0\.1:1\/v1 +MINE_API_KEY: set +2026-01-15 +other$/m,
    );
    expect(stdout).toMatch(/^played +all +\S+\/played\.yaml +none needed/m);
    expect(stdout).not.toContain(key);
  });

  test('says which key is missing', async () => {
    vi.stubEnv('MINE_API_KEY', '');
    expect((await models(configured(1), [])).stdout).toContain('MINE_API_KEY: NOT SET');
  });

  test('prints JSON', async () => {
    vi.stubEnv('MINE_API_KEY', key);
    const { stdout } = await models(configured(1), ['--json']);
    expect(JSON.parse(stdout)[0]).toEqual({
      name: 'mine',
      wires: ['openai-chat', 'anthropic-messages'],
      where: 'http://127.0.0.1:1/v1',
      key: { variable: 'MINE_API_KEY', set: true },
      pricesOf: '2026-01-15',
      aliases: ['other'],
    });
  });

  test('says so where there are none', async () => {
    expect((await models('{}', [])).stdout).toMatch(/no models are configured/);
  });
});

describe('offsite models check', () => {
  test('makes one call and says what came back, its usage and cost', async () => {
    vi.stubEnv('MINE_API_KEY', key);
    await using server = await testUpstream(json(200, fine));
    const { exitCode, stdout } = await models(configured(server.port), [
      'check',
      'mine',
      '--quick',
      '--json',
    ]);
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      model: 'mine',
      wire: 'openai-chat',
      answer: { text: 'ready', stopped: 'done' },
      answeredBy: 'upstream-name-2026',
      usage: { inputTokens: 10, outputTokens: 5, costUsd: 0.02 },
      pricesOf: '2026-01-15',
    });
    expect(server.received).toMatchObject([
      { path: '/v1/chat/completions', headers: { authorization: `Bearer ${key}` } },
    ]);
  });

  test('prints for people', async () => {
    vi.stubEnv('MINE_API_KEY', key);
    await using server = await testUpstream(json(200, fine));
    const { stdout } = await models(configured(server.port), ['check', 'mine', '--quick']);
    expect(stdout).toMatch(/^answer +"ready"$/m);
    expect(stdout).toMatch(/^tokens +10 in, 5 out$/m);
    expect(stdout).toMatch(/^cost +0\.020000 USD \(prices of 2026-01-15\)$/m);
  });

  test('asks over another of the wires', async () => {
    vi.stubEnv('MINE_API_KEY', key);
    const answer = {
      type: 'message',
      model: 'm',
      stop_reason: 'end_turn',
      content: [{ type: 'text', text: 'ready' }],
    };
    await using server = await testUpstream(json(200, answer));
    const args = ['check', 'mine', '--quick', '--wire', 'anthropic-messages'];
    expect((await models(configured(server.port), args)).stdout).toMatch(
      /^tokens +unknown in, unknown out$/m,
    );
    expect(server.received).toMatchObject([{ path: '/v1/messages', headers: { 'x-api-key': key } }]);
  });

  test.each([
    [
      'an unknown model',
      ['check', 'nobody'],
      'MINE_API_KEY',
      /no model nobody[\s\S]*offsite\.yaml has: mine, played/,
    ],
    ['a missing key', ['check', 'mine'], '', /MINE_API_KEY is not set/],
    [
      'a wire it does not speak',
      ['check', 'mine', '--wire', 'openai-responses'],
      '',
      /does not speak openai-responses/,
    ],
  ])('exits with 2 for %s', async (_what, args, value, message) => {
    vi.stubEnv('MINE_API_KEY', value);
    const { exitCode, stderr } = await models(configured(1), args);
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(message);
  });

  test.each([
    [401, /401.*bad key \[redacted\][\s\S]*apiKeyEnv/],
    [404, /404[\s\S]*name for the model[\s\S]*baseUrl/i],
    [400, /400/],
  ])(
    'exits with 3 and a hint for status %s, without the key that the server repeats',
    async (status, message) => {
      vi.stubEnv('MINE_API_KEY', key);
      await using server = await testUpstream(json(status, { error: { message: `bad key ${key}` } }));
      const { exitCode, stderr } = await models(configured(server.port), ['check', 'mine']);
      expect(exitCode).toBe(3);
      expect(stderr).toMatch(message);
      expect(stderr).not.toContain(key);
    },
  );

  test('exits with 3 and a hint where nothing listens', async () => {
    vi.stubEnv('MINE_API_KEY', key);
    const gone = await testUpstream(json(200, {}));
    await gone[Symbol.asyncDispose]();
    let now = systemClock.now();
    const sleep = async (ms: number) => {
      now += ms;
    };
    const clock: Clock = { ...systemClock, now: () => now, sleep };
    const { exitCode, stderr } = await models(configured(gone.port), ['check', 'mine'], clock);
    expect(exitCode).toBe(3);
    expect(stderr).toMatch(/ECONNREFUSED[\s\S]*running/);
  });
});
