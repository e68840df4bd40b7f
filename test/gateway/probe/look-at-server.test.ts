import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { type LookOptions, lookAtServer } from '../../../src/gateway/probe/look-at-server.ts';
import type { Step } from '../test-upstream.ts';
import {
  anthropicRoutes,
  geminiRoutes,
  koboldCppRoutes,
  llamaCppRoutes,
  lmStudioMissing,
  lmStudioRoutes,
  ok,
  ollamaRoutes,
  serverOf,
  sgLangRoutes,
  tgiRoutes,
  vllmRoutes,
} from './model-servers.ts';

const key = 'sk-a-secret-that-is-long-enough';

function look(address: string, options: Partial<LookOptions> = {}) {
  return lookAtServer(address, {
    env: {},
    clock: systemClock,
    signal: AbortSignal.timeout(30_000),
    ...options,
  });
}

/** What was found at a server of these routes, with its address left out. */
async function found(
  routes: Parameters<typeof serverOf>[0],
  missing?: Step,
  options: Partial<LookOptions> = {},
) {
  await using server = await serverOf(routes, missing);
  const origin = `http://127.0.0.1:${server.port}`;
  const { baseUrl, ...rest } = await look(origin, options);
  return { baseUrl: baseUrl.replace(origin, ''), ...rest };
}

describe('what a server is', () => {
  test('Ollama', async () => {
    expect(await found(ollamaRoutes)).toEqual({
      baseUrl: '/v1',
      server: { kind: 'Ollama', version: '0.14.2', models: expect.anything() },
      models: [{ id: 'qwen3-coder:30b' }, { id: 'llama3.2:latest' }],
      wires: ['openai-chat', 'openai-responses', 'anthropic-messages'],
      needsKey: false,
    });
  });

  test('llama.cpp, with its slots and the context of each', async () => {
    expect(await found(llamaCppRoutes)).toMatchObject({
      server: { kind: 'llama.cpp', version: 'b6000-abc1234', parallel: 2 },
      models: [{ id: 'qwen2.5-coder', contextWindow: 32768, longestContext: 131072 }],
      wires: ['openai-chat'],
    });
  });

  test('vLLM', async () => {
    expect(await found(vllmRoutes)).toMatchObject({
      server: { kind: 'vLLM', version: '0.11.2' },
      models: [{ id: 'Qwen/Qwen3-Coder-30B-A3B-Instruct', contextWindow: 65536 }],
      wires: ['openai-chat', 'openai-responses'],
    });
  });

  test('LM Studio, which answers 200 to what it does not have', async () => {
    expect(await found(lmStudioRoutes, lmStudioMissing)).toMatchObject({
      server: { kind: 'LM Studio' },
      models: [{ id: 'qwen/qwen3-coder-30b', contextWindow: 16384, longestContext: 262144 }],
      wires: ['openai-chat', 'openai-responses'],
    });
  });

  test('KoboldCpp, which also imitates Ollama', async () => {
    expect(await found(koboldCppRoutes)).toMatchObject({
      server: { kind: 'KoboldCpp', version: '1.102' },
      models: [{ id: 'koboldcpp/mistral-nemo', contextWindow: 8192 }],
      wires: ['openai-chat'],
    });
  });

  test('Text Generation Inference, which has no list of models', async () => {
    expect(await found(tgiRoutes)).toMatchObject({
      baseUrl: '/v1',
      server: { kind: 'Text Generation Inference', version: '3.0.0' },
      models: [{ id: 'bigcode/starcoder2-15b', contextWindow: 4096 }],
      wires: ['openai-chat'],
    });
  });

  test('SGLang', async () => {
    expect(await found(sgLangRoutes)).toMatchObject({
      server: { kind: 'SGLang', version: '0.5.3' },
      models: [{ id: 'Qwen/Qwen2.5-7B-Instruct', contextWindow: 32768 }],
    });
  });

  test('an API of Anthropic’s kind, which wants the key in a header of its own', async () => {
    const options = { env: { MINE: key }, apiKeyEnv: 'MINE' };
    expect(await found(anthropicRoutes, undefined, options)).toEqual({
      baseUrl: '/v1',
      server: undefined,
      models: [{ id: 'claude-sonnet-4-5', contextWindow: 200000, maxOutputTokens: 64000 }],
      wires: ['anthropic-messages'],
      needsKey: false,
    });
  });

  test('an API of Gemini’s kind', async () => {
    expect(await found(geminiRoutes)).toEqual({
      baseUrl: '/v1beta',
      server: undefined,
      models: [{ id: 'gemini-2.5-pro', contextWindow: 1048576, maxOutputTokens: 65536 }],
      wires: ['gemini'],
      needsKey: false,
    });
  });

  test('an API below a path without a version', async () => {
    const routes = { 'POST /deployments/mine/chat/completions': vllmRoutes['POST /v1/chat/completions'] };
    await using server = await serverOf(routes);
    const address = `http://127.0.0.1:${server.port}/deployments/mine`;
    expect(await look(address)).toMatchObject({ baseUrl: address, wires: ['openai-chat'] });
  });
});

describe('a key', () => {
  test('is asked for by a server that refuses everything, whose wires stay unknown', async () => {
    const refused = ok({ error: { message: 'Incorrect API key provided', code: 'invalid_api_key' } }, 401);
    expect(await found({}, refused)).toMatchObject({ needsKey: true, wires: [], models: [] });
  });

  test('is asked for by a server that tells which routes it has', async () => {
    const refused = ok({ error: { message: 'no key' } }, 401);
    const routes = { 'GET /v1/models': refused, 'POST /v1/chat/completions': refused };
    expect(await found(routes)).toMatchObject({ needsKey: true, wires: ['openai-chat'] });
  });

  test('goes to no server that a redirect names', async () => {
    await using other = await serverOf(vllmRoutes);
    const away: Step = (response, { path }) =>
      response.writeHead(307, { location: `http://127.0.0.1:${other.port}${path}` }).end();
    const options = { env: { MINE: key }, apiKeyEnv: 'MINE' };
    await expect(found({}, away, options)).rejects.toThrow(/it redirects to another address/);
    expect(other.received).toEqual([]);
  });
});

describe('a server that is broken', () => {
  test('answers with a web page', async () => {
    const page: Step = (response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!DOCTYPE html><title>Hello</title>');
    await expect(found({}, page)).rejects.toMatchObject({
      code: 'MODEL_SERVER_UNKNOWN',
      message: expect.stringContaining('web page'),
    });
  });

  test('never answers', async () => {
    await expect(found({}, () => undefined, { within: 200 })).rejects.toThrow(/within 0.2 s/);
  });

  test('never ends its answer', async () => {
    const endless: Step = (response) => {
      const more = () => response.write(Buffer.alloc(1 << 20, 0x20), more);
      response.on('error', () => undefined);
      more();
    };
    await expect(found({}, endless)).rejects.toThrow(/more than 4194304 bytes/);
  });

  test('hangs on routes that it does not have', async () => {
    const { server, wires } = await found(vllmRoutes, () => undefined, { within: 1_000 });
    expect({ kind: server?.kind, wires }).toEqual({
      kind: 'vLLM',
      wires: ['openai-chat', 'openai-responses'],
    });
  });

  test('lists models with names that nobody can write', async () => {
    const data = ['', ' ', '\u001b]52;c;x\u0007', 'x'.repeat(300), null, 7, 'fine'].map((id) => ({ id }));
    const routes = { ...vllmRoutes, 'GET /v1/models': ok({ object: 'list', data: [...data, null, 3] }) };
    expect((await found(routes)).models).toEqual([{ id: 'fine' }]);
  });

  test('lists more models than anyone can choose from', async () => {
    const data = Array.from({ length: 5_000 }, (_, index) => ({ id: `m${index}`, max_model_len: -1 }));
    const routes = { ...vllmRoutes, 'GET /v1/models': ok({ object: 'list', data }) };
    expect((await found(routes)).models).toHaveLength(2_000);
  });

  test('is not there', async () => {
    const gone = await serverOf({});
    await gone[Symbol.asyncDispose]();
    await expect(look(`http://127.0.0.1:${gone.port}`)).rejects.toMatchObject({ code: 'MODEL_UNREACHABLE' });
  });
});
