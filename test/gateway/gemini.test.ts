import { expect, test } from 'vitest';
import { type PlaceOptions, place } from './gateway-fixture.ts';
import { events, json } from './test-upstream.ts';

const options: PlaceOptions = { model: { wire: 'gemini' } };
const answer = {
  candidates: [{ content: { role: 'model', parts: [{ text: 'hi' }] }, finishReason: 'STOP', index: 0 }],
  modelVersion: 'big-1-2026',
  usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 15, thoughtsTokenCount: 5 },
};
const body = { contents: [{ role: 'user', parts: [{ text: 'hello' }] }] };
const path = '/v1beta/models/large:generateContent';

test('bytes pass as they are, to the path that names the model of the upstream', async () => {
  await using at = await place(options, json(200, answer));
  const sent = Buffer.from('{ "contents":[{"role":"user", "parts":[{"text":"hé"}]}] }');
  const headers = { 'x-goog-api-key': at.session.token('agent') };
  const got = await at.sandbox.ask({ path, headers, body: sent });
  expect(got).toMatchObject({ status: 200, body: answer });
  expect(at.upstream.received).toMatchObject([
    { path: '/v1/models/big-1:generateContent', headers: { 'x-goog-api-key': expect.any(String) } },
  ]);
  expect(at.upstream.received[0]?.headers['x-goog-api-key']).not.toBe(headers['x-goog-api-key']);
  expect(at.upstream.received[0]?.body).toEqual(sent);
  expect((await at.session.account()).usage).toMatchObject([
    { usage: { inputTokens: 100, outputTokens: 20 }, answeredBy: 'big-1-2026' },
  ]);
});

test('a stream passes as it is, and its usage is read', async () => {
  const text = `data: ${JSON.stringify(answer)}\r\n\r\n`;
  await using at = await place(options, events(text));
  const stream = '/v1beta/models/big:streamGenerateContent';
  const got = await at.sandbox.ask({ path: `${stream}?alt=sse`, headers: at.agent, body });
  expect(got.bytes.toString()).toBe(text);
  expect(at.upstream.received).toMatchObject([{ path: '/v1/models/big-1:streamGenerateContent?alt=sse' }]);
  expect((await at.session.account()).exchanges).toMatchObject([{ streamed: true, failure: undefined }]);
  expect(await at.sandbox.ask({ path: stream, headers: at.agent, body })).toMatchObject({
    status: 400,
    body: { error: { status: 'INVALID_ARGUMENT' } },
  });
});

test('tokens are counted by the model', async () => {
  await using at = await place(options, json(200, { totalTokens: 7 }));
  const got = await at.sandbox.ask({ path: '/v1beta/models/big:countTokens', headers: at.agent, body });
  expect(got.body).toEqual({ totalTokens: 7 });
  expect((await at.session.account()).usage[0]?.usage).toEqual({});
});

test('models are listed in the shape of the wire', async () => {
  await using at = await place(options, json(200, answer));
  const got = await at.sandbox.ask({ method: 'GET', path: '/v1beta/models', headers: at.agent });
  expect(got.body.models).toMatchObject([{ name: 'models/big' }, { name: 'models/large' }]);
});

test.each([
  ['another model', { model: 'models/other', ...body }],
  ['a member with underscores', { ...body, system_instruction: { parts: [{ text: 'x' }] } }],
  ['stored content', { ...body, cachedContent: 'cachedContents/1' }],
  ['a search', { ...body, tools: [{ googleSearch: {} }] }],
  ['code that runs there', { ...body, tools: [{ functionDeclarations: [], codeExecution: {} }] }],
  ['a request inside the request', { generateContentRequest: { model: 'models/other', ...body } }],
  ['an address', { contents: [{ parts: [{ fileData: { fileUri: 'https://x.example/a.png' } }] }] }],
  [
    'an address with underscores',
    { contents: [{ parts: [{ file_data: { file_uri: 'https://x.example' } }] }] },
  ],
  ['an address outside a list', { contents: { parts: { fileData: { fileUri: 'https://x.example' } } } }],
  [
    'an address of the system',
    { ...body, systemInstruction: { parts: [{ fileData: { fileUri: 'gs://x' } }] } },
  ],
  [
    'an address in a result',
    {
      contents: [
        {
          parts: [
            { functionResponse: { name: 'f', response: {}, parts: [{ fileData: { fileUri: 'gs://x' } }] } },
          ],
        },
      ],
    },
  ],
  [
    'an address in a single result',
    {
      contents: [
        { parts: [{ functionResponse: { name: 'f', parts: { fileData: { fileUri: 'gs://x' } } } }] },
      ],
    },
  ],
])('%s never reaches the model', async (_what, asked) => {
  await using at = await place(options, json(200, answer));
  const got = await at.sandbox.ask({ path, headers: at.agent, body: asked });
  expect(got).toMatchObject({ status: 400, body: { error: { status: 'INVALID_ARGUMENT' } } });
  expect(at.upstream.received).toHaveLength(0);
});

test('schemas, arguments and responses of tools may have any names', async () => {
  await using at = await place(options, json(200, answer));
  const asked = {
    contents: [
      { role: 'model', parts: [{ functionCall: { name: 'f', args: { file_data: 1, Type: 2, 'a b': 3 } } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'f', response: { fileData: { x: 1 } } } }] },
    ],
    tools: [
      { functionDeclarations: [{ name: 'f', parametersJsonSchema: { properties: { file_uri: {} } } }] },
    ],
  };
  expect(await at.sandbox.ask({ path, headers: at.agent, body: asked })).toMatchObject({ status: 200 });
});

test('a name of a model cannot lead to another path', async () => {
  await using at = await place(options, json(200, answer));
  for (const name of ['../admin', '%2e%2e', 'other', 'big:countTokens/../big', 'big?key=1']) {
    const got = await at.sandbox.ask({
      path: `/v1beta/models/${name}:generateContent`,
      headers: at.agent,
      body,
    });
    expect(got.status, name).toBe(404);
  }
  expect(at.upstream.received).toHaveLength(0);
});
