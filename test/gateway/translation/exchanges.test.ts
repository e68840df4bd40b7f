import { expect, test } from 'vitest';
import { chatAnswer, events, json } from '../test-upstream.ts';
import { servedPlace, type TranslatedPlace } from './translated-place.ts';

/** Sends a request as a client of Anthropic's does, and reads the whole answer. */
async function ask({ origin, token }: TranslatedPlace, path: string, body: object) {
  const answer = await fetch(`${origin}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  // biome-ignore lint/suspicious/noExplicitAny: tests look into documents of any shape
  const document: any = text.startsWith('{') ? JSON.parse(text) : undefined;
  return { status: answer.status, headers: answer.headers, text, document };
}

const hello = {
  model: 'big',
  max_tokens: 100,
  metadata: { user_id: 'u' },
  messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', cache_control: { type: 'ephemeral' } }] }],
};

const sentTo = (upstream: { received: { body: Buffer }[] }, index = 0) =>
  JSON.parse(upstream.received[index]?.body.toString() ?? '{}');

test('what is left out is named in the record, and the model gets the rest', async () => {
  await using at = await servedPlace('openai-chat', { record: 'full' }, json(200, chatAnswer));
  const { document } = await ask(at, '/v1/messages?beta=true', hello);
  expect(document).toMatchObject({ content: [{ text: 'hi' }], usage: { cache_read_input_tokens: 40 } });
  expect(sentTo(at.upstream)).toEqual({
    model: 'big-1',
    messages: [{ role: 'user', content: 'hi' }],
    max_tokens: 100,
  });
  const [exchange] = (await at.session.account()).exchanges;
  expect(exchange).toMatchObject({
    wire: 'openai-chat',
    path: '/chat/completions',
    usage: { inputTokens: 100, outputTokens: 20, cacheReadTokens: 40 },
    translation: {
      from: 'anthropic-messages',
      losses: [
        { path: 'metadata', kind: 'metadata', times: 1 },
        { path: 'messages[].content[].cache_control', kind: 'caching', times: 1 },
      ],
    },
  });
  // The model's side is kept.
  expect(at.kept.get(exchange?.requestBody ?? '')).toEqual(at.upstream.received[0]?.body);
  expect(JSON.parse(at.kept.get(exchange?.responseBody ?? '')?.toString() ?? '')).toEqual(chatAnswer);
});

test('a strict translation refuses what the wire cannot carry, and names it', async () => {
  await using at = await servedPlace('openai-chat', { translation: 'strict' }, json(200, chatAnswer));
  const { status, document } = await ask(at, '/v1/messages', hello);
  expect(status).toBe(400);
  expect(document.error.message).toContain('"metadata"');
  expect(at.upstream.received).toHaveLength(0);
  const { metadata: _, messages: __, ...plain } = hello;
  const allowed = { ...plain, messages: [{ role: 'user', content: 'hi' }] };
  expect(await ask(at, '/v1/messages', allowed)).toMatchObject({ status: 200 });
});

test.each([
  ['/v1/chat/completions', { model: 'big', n: 2, messages: [] }, 'n'],
  ['/v1/responses', { model: 'big', input: 'x', previous_response_id: 'r' }, 'previous_response_id'],
  [
    '/v1/responses',
    { model: 'big', input: 'x', stop: ['a'], tools: [{ type: 'local_shell' }] },
    'tools[].type',
  ],
])('%s: what would change the meaning is refused: %j', async (path, body, named) => {
  await using at = await servedPlace('anthropic-messages', {}, json(200, {}));
  const { status, document } = await ask(at, path, body);
  expect(status).toBe(400);
  expect(document.error).toMatchObject({
    code: 'not_translatable',
    message: expect.stringContaining(`"${named}"`),
  });
  expect(at.upstream.received).toHaveLength(0);
});

test("an error of the model comes in the client's shape, with its message and its status", async () => {
  const error = {
    error: { message: "This model's maximum context length is 10", code: 'context_length_exceeded' },
  };
  await using at = await servedPlace('openai-chat', {}, json(400, error));
  const { status, document } = await ask(at, '/v1/messages', hello);
  expect(status).toBe(400);
  expect(document).toEqual({
    type: 'error',
    error: { type: 'invalid_request_error', message: error.error.message },
  });
  expect((await at.session.account()).exchanges).toMatchObject([
    { status: 400, failure: expect.any(String) },
  ]);
});

test('thoughts and their signatures go from a Gemini to a client of Anthropic, and back to the call that they belong to', async () => {
  const parts = [
    { text: 'I should look.', thought: true },
    { functionCall: { name: 'bash', args: { command: 'ls' } }, thoughtSignature: 'c2lnbmVk' },
  ];
  const answer = { candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }] };
  await using at = await servedPlace('gemini', {}, json(200, answer));
  const tools = [{ name: 'bash', input_schema: { type: 'object' } }];
  const { document } = await ask(at, '/v1/messages', { ...hello, tools });
  expect(document.content).toEqual([
    { type: 'thinking', thinking: 'I should look.', signature: 'c2lnbmVk' },
    { type: 'tool_use', id: 'call_0', name: 'bash', input: { command: 'ls' } },
  ]);
  const result = { type: 'tool_result', tool_use_id: 'call_0', content: 'no such file', is_error: true };
  const messages = [
    ...hello.messages,
    { role: 'assistant', content: document.content },
    { role: 'user', content: [result] },
  ];
  await ask(at, '/v1/messages', { ...hello, tools, messages });
  expect(sentTo(at.upstream, 1).contents.slice(1)).toEqual([
    {
      role: 'model',
      parts: [parts[0], { ...parts[1], functionCall: { ...parts[1]?.functionCall, id: 'call_0' } }],
    },
    {
      role: 'user',
      parts: [{ functionResponse: { id: 'call_0', name: 'bash', response: { error: 'no such file' } } }],
    },
  ]);
});

test('images in the results of tools reach a model of chat completions after all results', async () => {
  await using at = await servedPlace('openai-chat', {}, json(200, chatAnswer));
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } };
  const call = (id: string) => ({ type: 'tool_use', id, name: 'look', input: {} });
  const result = (id: string, content: object[]) => ({ type: 'tool_result', tool_use_id: id, content });
  await ask(at, '/v1/messages', {
    ...hello,
    messages: [
      { role: 'assistant', content: [call('a'), call('b')] },
      { role: 'user', content: [result('a', [image]), result('b', [{ type: 'text', text: 'B' }])] },
    ],
  });
  expect(sentTo(at.upstream).messages.slice(1)).toEqual([
    { role: 'tool', tool_call_id: 'a', content: '' },
    { role: 'tool', tool_call_id: 'b', content: 'B' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'From the result of the tool call a:' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
      ],
    },
  ]);
});

test.each([
  ['openai-chat', undefined],
  ['openai-responses', { object: 'response.input_tokens', input_tokens: 42 }],
  ['gemini', { totalTokens: 42 }],
] as const)('tokens are counted by a model of %s, or estimated and marked', async (wire, counted) => {
  await using at = await servedPlace(wire, {}, json(200, counted));
  const { document, headers } = await ask(at, '/v1/messages/count_tokens', hello);
  const [exchange] = (await at.session.account()).exchanges;
  expect(headers.get('x-offsite-estimated')).toBe(counted ? null : 'true');
  expect(exchange?.translation?.estimated).toBe(counted ? undefined : true);
  expect(at.upstream.received).toHaveLength(counted ? 1 : 0);
  if (counted) expect(document).toEqual({ input_tokens: 42 });
  else expect(document.input_tokens).toBeGreaterThan(5);
});

test('a server without a count is estimated', async () => {
  await using at = await servedPlace('openai-responses', {}, json(404, { error: { message: 'no' } }));
  const answer = await ask(at, '/v1/messages/count_tokens', hello);
  expect(answer).toMatchObject({ status: 200, document: { input_tokens: expect.any(Number) } });
  expect(answer.headers.get('x-offsite-estimated')).toBe('true');
});

test("an error in a stream is told in the client's wire", async () => {
  const chunk = { id: 'c', choices: [{ index: 0, delta: { content: 'so far' } }] };
  const failure = { error: { message: 'overloaded', code: 503 } };
  const stream = [chunk, failure].map((data) => `data: ${JSON.stringify(data)}\n\n`).join('');
  await using at = await servedPlace('openai-chat', {}, events(stream));
  const { text } = await ask(at, '/v1/messages', { ...hello, stream: true });
  expect(text).toContain('so far');
  expect(text).toContain(
    'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"overloaded"}}',
  );
  expect(text).not.toContain('message_stop');
  const other = await ask(at, '/v1/responses', { model: 'big', input: 'x', stream: true });
  expect(other.text).toContain('response.failed');
});

test('arguments that are no JSON object reach a client whose wire carries only objects, and are named', async () => {
  const tool_calls = [{ id: 'a', type: 'function', function: { name: 'bash', arguments: 'ls -la' } }];
  const message = { role: 'assistant', content: null, tool_calls };
  const answer = { ...chatAnswer, choices: [{ index: 0, message, finish_reason: 'tool_calls' }] };
  await using at = await servedPlace('openai-chat', {}, json(200, answer));
  const contents = [{ role: 'user', parts: [{ text: 'x' }] }];
  for (const verb of ['generateContent', 'streamGenerateContent?alt=sse']) {
    const { text } = await ask(at, `/v1beta/models/big:${verb}`, { contents });
    expect(text).toContain('"args":{"malformed":"ls -la"}');
  }
  const { text } = await ask(at, '/v1/messages', hello);
  expect(text).toContain('"input":{"malformed":"ls -la"}');
  const { exchanges } = await at.session.account();
  const lost = { path: 'answer.arguments', kind: 'answer detail', times: 1 };
  expect(exchanges.map(({ translation }) => translation?.losses.at(-1))).toEqual([lost, lost, lost]);
});

test('tools of groups and tools that take text come back as what they were', async () => {
  const call = (id: string, name: string, input: object) => ({
    id,
    type: 'function',
    function: { name, arguments: JSON.stringify(input) },
  });
  const calls = [
    call('a', 'mcp__files__read', { path: 'x' }),
    call('b', 'apply_patch', { input: '*** Begin' }),
  ];
  const message = { role: 'assistant', content: null, tool_calls: calls };
  const answer = { ...chatAnswer, choices: [{ index: 0, message, finish_reason: 'tool_calls' }] };
  await using at = await servedPlace('openai-chat', {}, json(200, answer));
  const { document } = await ask(at, '/v1/responses', {
    model: 'big',
    input: 'x',
    tools: [
      { type: 'namespace', name: 'mcp__files', tools: [{ type: 'function', name: 'read', parameters: {} }] },
      { type: 'custom', name: 'apply_patch', description: 'Patches.' },
    ],
  });
  expect(document.output).toMatchObject([
    { type: 'function_call', call_id: 'a', namespace: 'mcp__files', name: 'read', arguments: '{"path":"x"}' },
    { type: 'custom_tool_call', call_id: 'b', name: 'apply_patch', input: '*** Begin' },
  ]);
});
