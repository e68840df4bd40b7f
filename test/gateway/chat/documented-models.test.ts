import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { systemClock } from '../../../src/base/clock.ts';
import { openGateway } from '../../../src/gateway/open-gateway.ts';
import { ConfigFile } from '../../../src/suite/config-file.ts';
import type { HttpModel, Wire } from '../../../src/suite/model-config.ts';
import { blocksOf } from '../../docs/blocks.ts';

const files = ['docs/models.md', 'docs/reference/model-configurations.md']
  .flatMap(blocksOf)
  .filter(({ language }) => language === 'yaml')
  .map(({ content }) => ({ content: parse(content) }));

/** What each server documents, seen from where the call arrives. */
const arrivals: Record<string, { url: string; key?: [header: string, value: string]; model?: string }> = {
  sonnet: { url: '/v1/messages', key: ['x-api-key', 'KEY'], model: 'claude-sonnet-4-5' },
  ollama: { url: '/v1/chat/completions', model: 'qwen3-coder:30b' },
  vllm: { url: '/v1/chat/completions', model: 'Qwen/Qwen3-Coder-30B-A3B-Instruct' },
  'llama-cpp': { url: '/v1/chat/completions', model: 'llama-cpp' },
  'lm-studio': { url: '/v1/chat/completions', model: 'qwen/qwen3-coder-30b' },
  litellm: { url: '/v1/chat/completions', key: ['authorization', 'Bearer KEY'], model: 'team-default' },
  openai: { url: '/v1/responses', key: ['authorization', 'Bearer KEY'], model: 'gpt-5' },
  anthropic: { url: '/v1/messages', key: ['x-api-key', 'KEY'], model: 'claude-sonnet-4-5' },
  gemini: {
    url: '/v1beta/models/gemini-2.5-pro:generateContent',
    key: ['x-goog-api-key', 'KEY'],
  },
  azure: { url: '/openai/v1/responses', key: ['api-key', 'KEY'], model: 'my-deployment' },
  'azure-classic': {
    url: '/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21',
    key: ['api-key', 'KEY'],
    model: 'azure-classic',
  },
  openrouter: {
    url: '/api/v1/chat/completions',
    key: ['authorization', 'Bearer KEY'],
    model: 'qwen/qwen3-coder',
  },
  bedrock: {
    url: '/openai/v1/chat/completions',
    key: ['authorization', 'Bearer KEY'],
    model: 'openai.gpt-oss-120b-1:0',
  },
};

const answers: Record<Wire, object> = {
  'openai-chat': { choices: [{ finish_reason: 'stop', message: { role: 'assistant', content: 'ready' } }] },
  'openai-responses': {
    status: 'completed',
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'ready' }] }],
  },
  'anthropic-messages': {
    type: 'message',
    stop_reason: 'end_turn',
    content: [{ type: 'text', text: 'ready' }],
  },
  gemini: { candidates: [{ finishReason: 'STOP', content: { role: 'model', parts: [{ text: 'ready' }] } }] },
};
const credentials = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'];

describe('a call of a model configured as the documentation says arrives as its server documents:', () => {
  const models = Object.assign({}, ...files.map(({ content }) => ConfigFile.safeParse(content).data?.models));
  const seen: { request: IncomingMessage; body: { model?: string } }[] = [];
  let wire: Wire = 'openai-chat';
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    seen.push({ request, body: JSON.parse(Buffer.concat(chunks).toString()) });
    response.setHeader('content-type', 'application/json').end(JSON.stringify(answers[wire]));
  });
  beforeAll(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  test('all of them are tested', () => {
    const http = Object.keys(models).filter((name) => 'baseUrl' in models[name]);
    expect(http.toSorted()).toEqual(Object.keys(arrivals).toSorted());
  });

  test.each(Object.entries(arrivals))('%s', async (name, expected) => {
    const config: HttpModel = models[name];
    wire = config.wire[0] ?? wire;
    const url = new URL(config.baseUrl);
    const here = `http://127.0.0.1:${(server.address() as AddressInfo).port}${url.pathname}`;
    await using gateway = openGateway({
      models: { [name]: { ...config, baseUrl: here } },
      env: config.apiKeyEnv === undefined ? {} : { [config.apiKeyEnv]: 'KEY' },
      clock: systemClock,
      scripted: () => {
        throw new Error('no scripted model is asked here');
      },
    });
    await using session = gateway.open({
      trial: 'docs',
      models: { agent: [name] },
      budget: {},
      hosts: [],
      keep: async () => '',
    });
    seen.length = 0;
    const hello = { messages: [{ from: 'user', text: 'hello' }], maxTokens: 64 } as const;
    const answer = await session.chat('agent', hello, AbortSignal.timeout(60_000));
    expect(answer.text).toBe('ready');
    const [{ request, body } = {}] = seen;
    expect(request?.url).toBe(expected.url);
    expect(body?.model).toBe(expected.model);
    expect(request?.headers).toMatchObject(config.headers);
    const sent = credentials.filter((header) => request?.headers[header] !== undefined);
    expect(sent.map((header) => [header, request?.headers[header]])).toEqual(
      expected.key ? [expected.key] : [],
    );
  });
});
