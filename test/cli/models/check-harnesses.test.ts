import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { Clock } from '../../../src/base/clock.ts';
import { type JsonObject, objectsOf } from '../../../src/gateway/wires/lenient.ts';
import type { Wire } from '../../../src/suite/model-config.ts';
import { ableModel, scriptedServer } from '../../gateway/probe/scripted-server.ts';
import {
  json,
  type Received,
  type Step,
  type TestUpstream,
  testUpstream,
} from '../../gateway/test-upstream.ts';
import { openPlace, type Place } from '../place.ts';
import { modelsIn } from './models-in-process.ts';

/** What a proxy answers by itself; undefined if the model answers. */
type Own = (body: JsonObject, received: Received) => Step | undefined;

/** A model that does all that a check asks, behind a proxy with answers of its own. */
async function proxied(own: Own, spoken: readonly Wire[] = ['openai-chat']): Promise<TestUpstream> {
  const stack = new AsyncDisposableStack();
  const model = stack.use(await scriptedServer(ableModel, { spoken }));
  const proxy = stack.use(
    await testUpstream(async (response, received) => {
      const { method, path, body } = received;
      const step = method === 'POST' ? own(JSON.parse(`${body}`), received) : undefined;
      if (step) return step(response, received);
      const answer = await fetch(`http://127.0.0.1:${model.port}${path}`, {
        method,
        ...(method === 'POST' && { body }),
      });
      response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
      response.end(Buffer.from(await answer.arrayBuffer()));
    }),
  );
  return { ...proxy, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

function placeOf({ url }: TestUpstream, model: object = {}): Place {
  const place = openPlace();
  const mine = { wire: 'openai-chat', baseUrl: url, model: 'm', ...model };
  place.write('offsite.yaml', stringify({ models: { mine } }));
  return place;
}

const check = async (place: Place, clock?: Clock) => {
  const { exitCode, stdout, stderr } = await modelsIn(place, ['check', '--json'], clock);
  expect(stdout, stderr).not.toBe('');
  const { examined } = JSON.parse(stdout);
  const findings: { level: string; says: string; set?: string }[] = examined.findings;
  return { exitCode, examined, findings, says: findings.map(({ says }) => says).join('\n') };
};

const sent = ({ received }: TestUpstream) =>
  received.filter(({ method }) => method === 'POST').map(({ body }) => JSON.parse(`${body}`));

describe('models check asks as harnesses do', () => {
  test('streamed, with two turns of tools, and with the options and limits of Claude Code and Codex', async () => {
    await using server = await proxied(() => undefined);
    using place = placeOf(server);
    const { exitCode, examined } = await check(place);
    expect(exitCode).toBe(0);
    expect(examined.harnesses).toMatchObject([
      { wire: 'openai-chat', isTranslated: false, state: 'works', parallel: true, leftOut: [] },
      { wire: 'openai-responses', harness: 'Codex', isTranslated: true, state: 'works', parallel: true },
      { wire: 'anthropic-messages', harness: 'Claude Code', isTranslated: true, state: 'works' },
      { wire: 'gemini', isTranslated: true, state: 'works', parallel: true },
    ]);
    const streamed = sent(server).filter(({ stream, tools }) => stream && tools);
    expect(streamed).toHaveLength(8);
    expect(streamed).toContainEqual(expect.objectContaining({ reasoning_effort: 'medium' }));
    expect(streamed).toContainEqual(
      expect.objectContaining({ reasoning_effort: 'high', max_tokens: 32_000 }),
    );
  });

  test('names what the server does not accept, and is content once that is set', async () => {
    const refused = ({ reasoning_effort, max_tokens, parallel_tool_calls }: JsonObject) =>
      max_tokens
        ? "max_tokens is unknown, use 'max_completion_tokens'"
        : reasoning_effort
          ? 'reasoning is not supported'
          : parallel_tool_calls !== undefined && 'unexpected key parallel_tool_calls';
    await using server = await proxied((body) => {
      const says = refused(body);
      return says ? json(400, { error: { message: says } }) : undefined;
    });
    using place = placeOf(server);
    const { exitCode, findings } = await check(place);
    expect({ exitCode, findings }).toEqual({
      exitCode: 0,
      findings: [
        {
          level: 'advice',
          says: expect.stringContaining('does not accept'),
          set: 'without: [parallel_tool_calls, reasoning_effort]',
        },
      ],
    });
    using set = placeOf(server, { without: ['reasoning_effort', 'parallel_tool_calls'] });
    expect(await check(set)).toMatchObject({ exitCode: 0, findings: [] });
  });

  test.each<[string, string, (body: JsonObject) => boolean, string]>([
    [
      'ids of calls of nine characters',
      'Tool call id was call_0 but must be a-z, A-Z, 0-9, with a length of 9.',
      ({ messages }) =>
        objectsOf(messages).some(
          ({ tool_call_id: id }) => id !== undefined && !/^[a-zA-Z0-9]{9}$/.test(`${id}`),
        ),
      'long_call_ids',
    ],
    [
      'no user after a tool',
      "Unexpected role 'user' after role 'tool'",
      ({ messages }) =>
        objectsOf(messages).some(({ role }, at, all) => role === 'user' && all[at - 1]?.role === 'tool'),
      'user_after_tool',
    ],
    [
      'users and models in turns',
      'After the optional system message, conversation roles must alternate user/assistant/user/assistant/...',
      ({ messages }) =>
        objectsOf(messages).some(({ role }, at, all) => role === 'user' && all[at - 1]?.role === 'user'),
      'repeated_role',
    ],
    [
      'contents that are strings',
      'messages[4].content: invalid type: sequence, expected a string',
      ({ messages }) => objectsOf(messages).some(({ content }) => Array.isArray(content)),
      'content_list',
    ],
  ])(
    'finds that a server takes only %s, as runs would, and what to set',
    async (_, message, refuses, name) => {
      await using server = await proxied((body) =>
        refuses(body) ? json(400, { object: 'error', message, code: 400 }) : undefined,
      );
      using place = placeOf(server);
      const { exitCode, findings } = await check(place);
      expect({ exitCode, findings }).toMatchObject({
        exitCode: 0,
        findings: [{ level: 'advice', set: `without: [${name}]` }],
      });
      const before = server.received.length;
      using set = placeOf(server, { without: [name] });
      expect(await check(set)).toMatchObject({ exitCode: 0, findings: [] });
      for (const { body } of server.received.slice(before))
        if (`${body}`) expect(refuses(JSON.parse(`${body}`))).toBe(false);
    },
  );

  test('tells that tools fail when they are streamed, although they work in one piece', async () => {
    const broken: Step = (response) =>
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: {"choices": [{"del');
    await using server = await proxied(({ stream, tools }) => (stream && tools ? broken : undefined));
    using place = placeOf(server);
    const { exitCode, examined, says } = await check(place);
    expect(exitCode).toBe(1);
    expect(examined.tools.state).toBe('works');
    expect(says).toMatch(/Claude Code, translated from anthropic-messages, does not work/);
    expect(says).toMatch(/opencode, over openai-chat, does not work/);
  });

  test('says which wire to leave out if its harnesses work only when they are translated', async () => {
    const refusal = json(
      500,
      { type: 'error', error: { message: 'no tools here' } },
      { 'x-should-retry': 'false' },
    );
    await using server = await proxied(
      ({ tools }, { path }) => (tools && path.endsWith('/messages') ? refusal : undefined),
      ['openai-chat', 'anthropic-messages'],
    );
    using place = placeOf(server, { wire: ['openai-chat', 'anthropic-messages'] });
    const { exitCode, findings } = await check(place);
    expect(exitCode).toBe(1);
    expect(findings).toContainEqual({
      level: 'problem',
      says: expect.stringMatching(/Claude Code, over anthropic-messages.*no tools here/),
      set: 'wire: [openai-chat]',
    });
  });

  test.each<[string, Record<string, string>, string, number, boolean?]>([
    ['in its words', {}, 'No deployment is available. Try again in 7 seconds.', 7000],
    ['in a header', { 'retry-after': '9' }, 'busy', 9000],
    ['not at all', {}, 'busy', 5000],
    ['while it measures', {}, 'Try again in 3 seconds.', 3000, true],
  ])('waits if its own question makes the server ask to wait, %s', async (_, headers, message, ms, late) => {
    let isCooling = false;
    const waits: number[] = [];
    const clock: Clock = {
      now: () => 1_000_000,
      monotonic: () => 1_000_000,
      async sleep(wait) {
        waits.push(wait);
        isCooling = false;
      },
    };
    await using server = await proxied(
      ({ messages }, { path }) => {
        if (isCooling) return json(429, { error: { message } }, headers);
        isCooling = late ? JSON.stringify(messages ?? []).includes('Sample 1.') : path.endsWith('/responses');
        return undefined;
      },
      ['openai-chat', 'anthropic-messages'],
    );
    using place = placeOf(server);
    const { examined } = await check(place, clock);
    expect(examined.speed).toMatchObject({ samples: 3 });
    expect(examined.wires).toMatchObject([
      { wire: 'openai-chat', state: 'works' },
      { wire: 'openai-responses', state: 'missing' },
      { wire: 'anthropic-messages', state: 'works' },
      { wire: 'gemini' },
    ]);
    expect(waits).toContain(ms);
  });

  test('asks for everything again, whatever was refused before', async () => {
    let refuses = true;
    await using server = await proxied(({ reasoning_effort }) =>
      refuses && reasoning_effort ? json(422, { detail: 'reasoning_effort: not permitted' }) : undefined,
    );
    using place = placeOf(server);
    expect((await check(place)).findings).toHaveLength(1);
    refuses = false;
    expect((await check(place)).findings).toEqual([]);
  });

  test('says that a configured context is too small for harnesses', async () => {
    await using server = await proxied(() => undefined);
    using place = placeOf(server, { contextWindow: 4096 });
    const { exitCode, says } = await check(place);
    expect({ exitCode, says }).toEqual({
      exitCode: 1,
      says: expect.stringContaining('contextWindow: 4096 is too small for most harnesses'),
    });
  });
});
