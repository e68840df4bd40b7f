import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { JsonObject } from '../../../src/gateway/wires/lenient.ts';
import { RefusedOptionsFile } from '../../../src/ledger/refused-options.ts';
import type { Wire } from '../../../src/suite/model-config.ts';
import { gatewayClock } from '../gateway-clock.ts';
import { place, question } from '../gateway-fixture.ts';
import { chatAnswer, json, type Step, testUpstream } from '../test-upstream.ts';
import { asked, kinds, messageList, particular } from './refusing-servers.ts';

test.for(kinds)(
  'a refusal by %s is asked again without it, once',
  async ([, refuses, status, said, left]) => {
    await using at = await place(
      {},
      particular((body) => (refuses(body) ? [status, said] : undefined)),
    );
    expect(await at.sandbox.ask({ headers: at.agent, body: asked })).toMatchObject({ status: 200 });
    const before = at.upstream.received.length;
    // It is remembered: the next request is sent once.
    expect(await at.sandbox.ask({ headers: at.agent, body: asked })).toMatchObject({ status: 200 });
    expect(at.upstream.received).toHaveLength(before + 1);
    const { exchanges } = await at.session.account();
    const losses = left.map((path) => ({ path, kind: 'refused by the server', times: 1 }));
    expect(exchanges).toMatchObject([
      { losses, failure: undefined },
      { losses, failedTries: [] },
    ]);
    expect(exchanges[0]?.failedTries[0]?.reason).toContain(`it answered ${status}: `);
    // Everything else is still asked for.
    const sent = JSON.parse(at.upstream.received.at(-1)?.body.toString() ?? '');
    for (const name of Object.keys(asked)) if (!left.includes(name)) expect(sent, name).toHaveProperty(name);
  },
);

test('a limit is asked for by its other name, which is no loss', async () => {
  const said = {
    error: { message: "Unsupported: 'max_tokens'. Use 'max_completion_tokens'.", param: 'max_tokens' },
  };
  await using at = await place(
    {},
    particular((body) => (body.max_tokens ? [400, said] : undefined)),
  );
  const body = { ...question, max_tokens: 77 };
  expect(await at.sandbox.ask({ headers: at.agent, body })).toMatchObject({ status: 200 });
  expect(JSON.parse(`${at.upstream.received.at(-1)?.body}`)).toEqual({
    model: 'big-1',
    messages: question.messages,
    max_completion_tokens: 77,
  });
  expect((await at.session.account()).exchanges[0]?.losses).toBeUndefined();
});

test('a limit that is too large under both names is left out', async () => {
  const words =
    "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is " +
    '32768 tokens and your request has 12000 input tokens.';
  const said = { object: 'error', message: words, type: 'BadRequestError' };
  const refuses = ({ max_tokens, max_completion_tokens }: JsonObject) => max_tokens ?? max_completion_tokens;
  await using at = await place(
    {},
    particular((body) => (refuses(body) ? [400, said] : undefined)),
  );
  const body = { ...question, max_tokens: 32_000 };
  expect(await at.sandbox.ask({ headers: at.agent, body })).toMatchObject({ status: 200 });
  expect((await at.session.account()).exchanges[0]?.losses).toMatchObject([{ path: 'max_tokens' }]);
});

test.each([
  { loc: ['body', 'messages', 0, 'role'], msg: "Input should be 'system' or 'user'" },
  {
    loc: ['body', 'messages', 0],
    msg: "Input tag 'developer' found using 'role' is none of: 'system', 'user'",
  },
])('a role that the server does not know becomes the system: $loc', async (detail) => {
  const said = { detail: [detail] };
  const refuses = (body: JsonObject) => messageList(body).some(({ role }) => role === 'developer');
  await using at = await place(
    {},
    particular((body) => (refuses(body) ? [422, said] : undefined)),
  );
  const messages = [{ role: 'developer', content: 'Be short.' }, ...question.messages];
  expect(await at.sandbox.ask({ headers: at.agent, body: { ...question, messages } })).toMatchObject({
    status: 200,
  });
  expect(JSON.parse(`${at.upstream.received.at(-1)?.body}`).messages).toEqual([
    { role: 'system', content: 'Be short.' },
    ...question.messages,
  ]);
});

test('a value that is refused is left out, and another value of the same option is not', async () => {
  const said = { error: { message: "'reasoning_effort' does not support 'minimal' with this model." } };
  await using at = await place(
    {},
    particular((body) => (body.reasoning_effort === 'minimal' ? [400, said] : undefined)),
  );
  await at.sandbox.ask({ headers: at.agent, body: { ...question, reasoning_effort: 'minimal' } });
  await at.sandbox.ask({ headers: at.agent, body: { ...question, reasoning_effort: 'low' } });
  const sent = at.upstream.received.map(({ body }) => JSON.parse(`${body}`).reasoning_effort);
  expect(sent).toEqual(['minimal', undefined, 'low']);
});

test('an odd value of one client does not change what another asks for', async () => {
  const refuses = ({ temperature, thinking }: JsonObject) =>
    Number(temperature) > 2 ? 'temperature must be at most 2' : thinking === 7 && 'thinking is wrong';
  await using at = await place(
    {},
    particular((body) => {
      const says = refuses(body);
      return says ? [400, says] : undefined;
    }),
  );
  for (const odd of [{ temperature: 99 }, { thinking: 7 }]) {
    const body = { ...question, ...odd };
    expect(await at.sandbox.ask({ headers: at.agent, body })).toMatchObject({ status: 200 });
  }
  const usual = { ...question, temperature: 0.5, thinking: { type: 'adaptive' } };
  await at.sandbox.ask({ headers: at.agent, body: usual });
  expect(JSON.parse(`${at.upstream.received.at(-1)?.body}`)).toEqual({ ...usual, model: 'big-1' });
});

test("the gateway's own wish for usage is taken back on the same wire", async () => {
  const said = { message: 'Extra inputs are not permitted: stream_options' };
  await using at = await place(
    {},
    particular((body) => (body.stream_options ? [422, said] : undefined)),
  );
  const answer = await at.sandbox.ask({ headers: at.agent, body: { ...question, stream: true } });
  expect(answer.status).toBe(200);
  const last = JSON.parse(`${at.upstream.received.at(-1)?.body}`);
  expect(last).toEqual({ ...question, model: 'big-1', stream: true });
});

test.for<[string, object]>([
  ['what the request means', { detail: [{ loc: ['body', 'tools'], msg: 'Extra inputs are not permitted' }] }],
  [
    "a name of a tool's schema",
    { detail: [{ loc: ['body', 'tools', 0, 'function', 'parameters', 'temperature'], msg: 'no' }] },
  ],
  ['nothing', { error: { message: 'this is no valid request' } }],
])('a refusal that names %s is told as it is, and nothing is left out', async ([, said]) => {
  await using at = await place(
    {},
    particular(() => [422, said]),
  );
  const answer = await at.sandbox.ask({ headers: at.agent, body: asked });
  expect(answer).toMatchObject({ status: 422, body: said });
  expect(at.upstream.received).toHaveLength(1);
});

test('the first refusal is told if leaving out what it names does not help', async () => {
  let number = 0;
  await using at = await place(
    {},
    particular(() => [400, { error: { message: `temperature and store are wrong (${++number})` } }]),
  );
  const answer = await at.sandbox.ask({ headers: at.agent, body: asked });
  expect(answer.body).toEqual({ error: { message: 'temperature and store are wrong (1)' } });
  // Nothing is learned from that.
  await at.sandbox.ask({ headers: at.agent, body: asked });
  expect(at.upstream.received.at(-2)?.body.toString()).toContain('"service_tier"');
  expect(
    at.upstream.received.filter(({ body }) => `${body}`.includes('"temperature"')).length,
  ).toBeGreaterThan(1);
});

test('a conversation that is too long is told, although an option was refused before', async () => {
  await using at = await place(
    {},
    particular((body) =>
      body.store === undefined
        ? [400, { error: { message: 'too many', code: 'context_length_exceeded' } }]
        : [400, { error: { message: 'unknown field store' } }],
    ),
  );
  const answer = await at.sandbox.ask({ headers: at.agent, body: asked });
  expect(answer.body.error.code).toBe('context_length_exceeded');
});

test('a setting leaves options out from the beginning', async () => {
  await using at = await place({ model: { without: ['strict', 'store'] } }, json(200, chatAnswer));
  await at.sandbox.ask({ headers: at.agent, body: asked });
  const sent = JSON.parse(`${at.upstream.received[0]?.body}`);
  expect(sent).not.toHaveProperty('store');
  expect(sent.tools).toEqual([
    { type: 'function', function: { name: 'bash', parameters: { type: 'object' } } },
  ]);
  expect(sent.temperature).toBe(0.2);
});

test('a setting cannot leave out what a request means', async () => {
  await expect(place({ model: { without: ['tools'] } }, json(200, chatAnswer))).rejects.toThrow(
    'the model big has "tools" in without',
  );
});

test('with a strict translation, what was asked for is not left out', async () => {
  const said = { error: { message: 'store is unknown', param: 'store' } };
  await using at = await place(
    { model: { translation: 'strict' } },
    particular(() => [400, said]),
  );
  expect(await at.sandbox.ask({ headers: at.agent, body: asked })).toMatchObject({ status: 400, body: said });
  expect(at.upstream.received).toHaveLength(1);
});

test('a choice of tools that is the default is not named, which is no loss', async () => {
  const said = { error: { message: 'tool_choice is not supported' } };
  await using at = await place(
    {},
    particular((body) => (body.tool_choice ? [400, said] : undefined)),
  );
  const choosing = { ...asked, tool_choice: 'auto' };
  expect(await at.sandbox.ask({ headers: at.agent, body: choosing })).toMatchObject({ status: 200 });
  expect((await at.session.account()).exchanges[0]?.losses).toBeUndefined();
  const required = { ...asked, tool_choice: 'required' };
  expect(await at.sandbox.ask({ headers: at.agent, body: required })).toMatchObject({
    status: 400,
    body: said,
  });
});

test('a limit that the wire requires is lowered until the server takes it, and not remembered', async () => {
  const most = 9_000;
  const said = { type: 'error', error: { message: `max_tokens: the maximum is ${most}` } };
  const answer = { type: 'message', content: [{ type: 'text', text: 'hi' }], stop_reason: 'end_turn' };
  const step: Step = (response, received) =>
    (JSON.parse(`${received.body}`).max_tokens > most ? json(400, said) : json(200, answer))(
      response,
      received,
    );
  await using at = await place({ model: { wire: 'anthropic-messages' } }, step);
  const body = { ...question, max_tokens: 32_000 };
  const path = '/v1/messages';
  for (const _ of [1, 2])
    expect(await at.sandbox.ask({ path, headers: at.agent, body })).toMatchObject({ status: 200 });
  const limits = at.upstream.received.map((one) => JSON.parse(`${one.body}`).max_tokens);
  expect(limits).toEqual([32_000, 16_000, 8_000, 32_000, 16_000, 8_000]);
  expect((await at.session.account()).exchanges[0]?.losses).toMatchObject([{ path: 'max_tokens<=8000' }]);
});

test.each([
  {
    error: {
      type: 'invalid_request_error',
      message: "messages.1.role: Input should be 'user' or 'assistant'",
    },
  },
  { detail: [{ loc: ['body', 'messages', 1, 'role'], msg: "Input should be 'user' or 'assistant'" }] },
  { error: 'messages[1].role: unknown variant `system`, expected `user` or `assistant`' },
])('a system text among the messages is told as the user: %j', async (said) => {
  const answer = { type: 'message', role: 'assistant', content: [], stop_reason: 'end_turn' };
  await using at = await place({ model: { wire: 'anthropic-messages' } }, (response, received) => {
    const body = JSON.parse(`${received.body}`);
    const isRefused = messageList(body).some(({ role }) => role === 'system');
    return (isRefused ? json(400, said) : json(200, answer))(response, received);
  });
  const messages = [...question.messages, { role: 'system', content: 'The folder is /workspace.' }];
  const body = { ...question, max_tokens: 1000, messages };
  const asked = { path: '/v1/messages', headers: at.agent, body };
  expect(await at.sandbox.ask(asked)).toMatchObject({ status: 200 });
  expect(await at.sandbox.ask(asked)).toMatchObject({ status: 200 });
  expect(at.upstream.received).toHaveLength(3);
  expect(JSON.parse(`${at.upstream.received.at(-1)?.body}`).messages).toEqual([
    ...question.messages,
    { role: 'user', content: 'The folder is /workspace.' },
  ]);
  expect((await at.session.account()).exchanges[0]?.losses).toMatchObject([
    { path: 'messages[].role=system' },
  ]);
});

test('a template that fails with 500 over a role is asked again, and a 500 of the moment is not learned', async () => {
  const said = { error: { code: 500, message: 'Unexpected message role.', type: 'server_error' } };
  const refuses = (body: JsonObject) => messageList(body).some(({ role }) => role === 'developer');
  await using at = await place(
    {},
    particular((body) => (refuses(body) ? [500, said] : undefined)),
  );
  const messages = [{ role: 'developer', content: 'Be short.' }, ...question.messages];
  const body = { ...question, messages };
  expect(await at.sandbox.ask({ headers: at.agent, body })).toMatchObject({ status: 200 });

  const passing = json(500, { error: { message: 'the store is down' } });
  await using other = await place({}, passing, json(200, chatAnswer));
  for (const _ of [1, 2]) await other.sandbox.ask({ headers: other.agent, body: asked });
  expect(other.upstream.received).toHaveLength(3);
  expect(`${other.upstream.received.at(-1)?.body}`).toContain('"store"');
});

test('the bytes of everything else stay as they are', async () => {
  const said = { error: { message: 'unknown field store' } };
  await using at = await place(
    {},
    particular((body) => (body.store === false ? [400, said] : undefined)),
  );
  const body = '{ "model":"big", "store" : false,\n "seed": 12345678901234567890, "messages": [ ] }';
  await at.sandbox.ask({ headers: at.agent, body });
  expect(`${at.upstream.received.at(-1)?.body}`).toBe(
    '{"model":"big-1","seed":12345678901234567890,"messages":[ ]}',
  );
});

test('a question of this process, such as that of a judge, is asked again in the same way', async () => {
  const said = { error: { message: 'no', param: 'max_tokens' } };
  await using at = await place(
    {},
    particular((body) => (body.max_tokens ? [400, said] : undefined)),
  );
  const asking = { messages: [{ from: 'user', text: 'hello' }], maxTokens: 9 } as const;
  expect(await at.session.chat('agent', asking, new AbortController().signal)).toMatchObject({ text: 'hi' });
  expect(JSON.parse(`${at.upstream.received.at(-1)?.body}`)).toMatchObject({ max_completion_tokens: 9 });
});

/** By wire: what asks for a form, how a server refuses it, and how it answers. */
const forms: [Wire, (body: JsonObject) => unknown, string, object][] = [
  ['openai-chat', (body) => body.response_format, 'This response_format type is unavailable now', chatAnswer],
  [
    'openai-responses',
    (body) => body.text,
    'structured output is not supported',
    {
      id: 'r',
      object: 'response',
      status: 'completed',
      output: [{ type: 'message', content: [{ type: 'output_text', text: 'hi' }] }],
    },
  ],
  [
    'anthropic-messages',
    (body) => body.tool_choice,
    'Thinking may not be enabled when tool_choice forces tool use.',
    {
      id: 'm',
      type: 'message',
      role: 'assistant',
      stop_reason: 'end_turn',
      content: [{ type: 'text', text: 'hi' }],
    },
  ],
  [
    'gemini',
    (body) => Object(body.generationConfig).responseMimeType,
    'JSON mode is not enabled for models/gemma',
    { candidates: [{ content: { parts: [{ text: 'hi' }] }, finishReason: 'STOP' }] },
  ],
];

test.for(forms)(
  'a judge, which checks the form of its answer, asks without it if the server refuses it: %s',
  async ([wire, form, message, answer]) => {
    await using at = await place({ model: { wire } }, (response, { body, ...rest }) =>
      (form(JSON.parse(`${body}`)) === undefined ? json(200, answer) : json(400, { error: { message } }))(
        response,
        { body, ...rest },
      ),
    );
    const schema = {
      name: 'judgment',
      schema: { type: 'object', properties: { score: { type: 'number' } } },
    };
    const asking = { messages: [{ from: 'user', text: 'Answer with {"score": 1}.' }], schema } as const;
    const ask = () => at.session.chat('agent', asking, new AbortController().signal);
    expect(await ask()).toMatchObject({ text: 'hi', calls: [] });
    const asked = at.upstream.received.length;
    expect(await ask()).toMatchObject({ text: 'hi' });
    expect(at.upstream.received).toHaveLength(asked + 1);
  },
);

test('an agent that asks for a form is told that the server refuses it, whatever a judge learned', async () => {
  const said = { error: { message: 'no', param: 'response_format' } };
  await using at = await place(
    {},
    particular((body) => (body.response_format ? [400, said] : undefined)),
  );
  const schema = { name: 'judgment', schema: { type: 'object' } };
  const asking = { messages: [{ from: 'user', text: 'hello' }], schema } as const;
  expect(await at.session.chat('agent', asking, new AbortController().signal)).toMatchObject({ text: 'hi' });
  const body = { ...question, response_format: { type: 'json_object' } };
  expect(await at.sandbox.ask({ headers: at.agent, body })).toMatchObject({ status: 400 });
});

test('a translated request is asked again in the same way', async () => {
  const said = 'reasoning is not supported by this model';
  await using at = await place(
    {},
    particular((body) => (body.reasoning_effort ? [400, said] : undefined)),
  );
  const body = {
    model: 'big',
    max_tokens: 100,
    messages: question.messages,
    output_config: { effort: 'high' },
  };
  const answer = await at.sandbox.ask({ path: '/v1/messages', headers: at.agent, body });
  expect(answer).toMatchObject({ status: 200, body: { content: [{ text: 'hi' }] } });
  expect((await at.session.account()).exchanges).toMatchObject([
    { losses: [{ path: 'reasoning_effort' }], translation: { losses: [] } },
  ]);
});

test('what a server refused is known to the next process, for seven days', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-refused-'));
  using stack = new DisposableStack();
  stack.defer(() => rmSync(folder, { recursive: true }));
  const server = particular((body) => (body.store === undefined ? undefined : [400, 'no store here']));
  await using upstream = await testUpstream(server);
  const asks = async (later = 0) => {
    const clock = gatewayClock();
    const gateway = { refused: new RefusedOptionsFile(folder), clock: { ...clock, now: () => later } };
    await using at = await place({ model: { baseUrl: upstream.url }, gateway }, server);
    const before = upstream.received.length;
    expect(await at.sandbox.ask({ headers: at.agent, body: asked })).toMatchObject({ status: 200 });
    return upstream.received.length - before;
  };
  expect(await asks()).toBe(2);
  expect(await asks()).toBe(1);
  expect(await asks(7 * 24 * 3_600_000)).toBe(2);
  // A damaged file is as none.
  writeFileSync(join(folder, 'refused-options.json'), '{');
  expect(await asks()).toBe(2);
  expect(statSync(join(folder, 'refused-options.json')).mode & 0o777).toBe(0o600);
});
