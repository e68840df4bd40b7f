import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { key, place, question } from './gateway-fixture.ts';
import { chatAnswer, json } from './test-upstream.ts';

const answered = json(200, chatAnswer, { 'x-request-id': 'r1' });
const allWires = { wire: ['openai-chat', 'openai-responses', 'anthropic-messages'] };

test('a request reaches the model with the real key, and the answer comes back byte for byte', async () => {
  const odd = `{ "model" : "big-1",\n "messages":[{"role":"user","content":"\\u00e9 – \\"big-1\\""}], "temperature": 1.50 }`;
  await using at = await place({ model: { model: undefined, aliases: ['big-1'] } }, answered);
  const exact = odd.replaceAll('big-1', 'big');
  const answer = await at.sandbox.ask({ headers: at.agent, body: exact });
  expect(answer.status).toBe(200);
  expect(answer.bytes.toString()).toBe(JSON.stringify(chatAnswer));
  expect(answer.headers['x-request-id']).toBe('r1');
  const [received] = at.upstream.received;
  expect(received).toMatchObject({ method: 'POST', path: '/v1/chat/completions' });
  expect(received?.headers.authorization).toBe(`Bearer ${key}`);
  expect(received?.body.toString()).toBe(exact);
});

test("only the model's name changes where the upstream has another for it", async () => {
  await using at = await place({}, answered);
  const body = '{"messages":[{"role":"user","content":"model: large"}] , "model":\t"l\\u0061rge" ,"n":1}';
  await at.sandbox.ask({ headers: at.agent, body });
  expect(at.upstream.received[0]?.body.toString()).toBe(body.replace('"l\\u0061rge"', '"big-1"'));
});

test('a streaming chat request asks for its usage, and all else stays as it was', async () => {
  await using at = await place({ model: { model: 'big' } }, answered);
  const send = async (body: string) => {
    await at.sandbox.ask({ headers: at.agent, body });
    return at.upstream.received.at(-1)?.body.toString();
  };
  expect(await send('{ "model":"big","stream":true}')).toBe(
    '{"stream_options":{"include_usage":true}, "model":"big","stream":true}',
  );
  expect(await send('{"model":"big","stream":true,"stream_options":null}')).toBe(
    '{"model":"big","stream":true,"stream_options":{"include_usage":true}}',
  );
  expect(await send('{"stream_options" : {"x":1},"model":"big","stream":true}')).toBe(
    '{"stream_options" : {"x":1,"include_usage":true},"model":"big","stream":true}',
  );
  const asked = '{"model":"big","stream":true,"stream_options": {"include_usage": true}}';
  expect(await send(asked)).toBe(asked);
  expect(await send('{"model":"big","stream":false}')).toBe('{"model":"big","stream":false}');
});

test('the key goes where the wire or the configuration says', async () => {
  const models = {
    claude: { wire: 'anthropic-messages' },
    azure: { auth: 'api-key', query: { 'api-version': '2026-01' }, headers: { 'X-Deployment': 'd' } },
    open: { apiKeyEnv: undefined },
  };
  await using at = await place({ models, session: { models: { agent: Object.keys(models) } } }, answered);
  const headers = async (path: string, model: string) => {
    await at.sandbox.ask({ path, headers: { ...at.agent, 'x-api-key': 'sandbox' }, body: { model } });
    return at.upstream.received.at(-1);
  };
  const claude = await headers('/v1/messages?beta=true', 'claude');
  expect(claude).toMatchObject({ path: '/v1/messages?beta=true', headers: { 'x-api-key': key } });
  expect(claude?.headers.authorization).toBeUndefined();
  const azure = await headers('/chat/completions?api-version=evil', 'azure');
  expect(azure).toMatchObject({
    path: '/v1/chat/completions?api-version=2026-01',
    headers: { 'api-key': key, 'x-deployment': 'd' },
  });
  expect(azure?.headers['x-api-key']).toBeUndefined();
  const open = await headers('/v1/chat/completions', 'open');
  expect(Object.keys(open?.headers ?? {})).not.toContain('authorization');
});

test('the upstream counts tokens, and that is no usage', async () => {
  await using at = await place({ model: allWires }, json(200, { input_tokens: 12 }));
  const path = '/v1/messages/count_tokens?beta=true';
  expect((await at.sandbox.ask({ path, headers: at.agent, body: question })).body).toEqual({
    input_tokens: 12,
  });
  expect(at.upstream.received[0]?.path).toBe(path);
  const account = await at.session.account();
  expect(account.usage).toMatchObject([{ requests: 1, usage: {} }]);
  expect(account.failure).toBeUndefined();
});

test('a redirect of the upstream is not followed, and its address is not revealed', async () => {
  await using elsewhere = await place({}, answered);
  const location = elsewhere.upstream.url;
  await using at = await place({}, json(307, {}, { location }));
  const answer = await at.sandbox.ask({ headers: at.agent, body: question });
  expect(answer).toMatchObject({ status: 502, body: { error: { code: 'model_redirected' } } });
  expect(JSON.stringify(answer)).not.toContain(location);
  expect(elsewhere.upstream.received).toHaveLength(0);
  expect((await at.session.account()).failure).toContain('redirect');
});

test('a body of 100 MB and a compressed one are refused before they are read', async () => {
  await using at = await place({}, answered);
  const large = await at.sandbox.ask({ headers: at.agent, body: Buffer.alloc(100_000_000, 'x') });
  expect(large).toMatchObject({ status: 413, body: { error: { code: 'request_too_large' } } });
  const headers = { ...at.agent, 'content-encoding': 'gzip' };
  expect(await at.sandbox.ask({ headers, body: question })).toMatchObject({ status: 415 });
  expect(await at.sandbox.ask({ headers: at.agent, body: question })).toMatchObject({ status: 200 });
});

test('an upstream that compresses though it was asked not to is read, and its usage with it', async () => {
  await using at = await place({}, (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
    response.end(gzipSync(JSON.stringify(chatAnswer)));
  });
  const answer = await at.sandbox.ask({ headers: at.agent, body: question });
  expect(answer).toMatchObject({ status: 200, body: chatAnswer });
  expect(answer.headers['content-encoding']).toBeUndefined();
  expect((await at.session.account()).usage).toMatchObject([{ usage: { inputTokens: 100 } }]);
});

const same = (whole: Buffer) => whole;
/** Without the sum at its end. */
const endless = (whole: Buffer) => gzipSync(whole).subarray(0, -8);

test.each<[string, string, (whole: Buffer) => Buffer]>([
  ['utf-8', 'utf-8', same],
  ['aws-chunked', 'aws-chunked', same],
  ['GZIP', 'GZIP', gzipSync],
  ['gzip, and never ends', 'gzip', endless],
  ['deflate', 'deflate', deflateSync],
  ['deflate, without its header', 'deflate', deflateRawSync],
  ['br', 'br', brotliCompressSync],
  ['zstd', 'zstd', zstdCompressSync],
])('an answer whose encoding is said to be %s is read', async (_, named, encode) => {
  const sent = encode(Buffer.from(JSON.stringify(chatAnswer)));
  await using at = await place({}, (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': named });
    response.end(sent);
  });
  const answer = await at.sandbox.ask({ headers: at.agent, body: question });
  expect(answer).toMatchObject({ status: 200, body: chatAnswer });
  expect((await at.session.account()).usage).toMatchObject([{ usage: { inputTokens: 100 } }]);
});

test('a thousand unusual headers do no harm', async () => {
  await using at = await place({}, answered);
  const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`x-${index}`, 'v']));
  const answer = await at.sandbox.ask({ headers: { ...at.agent, ...many }, body: question });
  expect(answer.status).toBeGreaterThanOrEqual(200);
  expect(await at.sandbox.ask({ headers: at.agent, body: question })).toMatchObject({ status: 200 });
});

test('fifty requests at once each get their own answer', async () => {
  await using at = await place({}, (response, { body }) => {
    const { n } = JSON.parse(body.toString());
    json(200, { ...chatAnswer, id: n })(response, { body } as never);
  });
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, n) => at.sandbox.ask({ headers: at.agent, body: { ...question, n } })),
  );
  expect(answers.map(({ body }) => body.id)).toEqual(Array.from({ length: 50 }, (_, n) => n));
  expect((await at.session.account()).usage).toMatchObject([{ requests: 50, usage: { inputTokens: 5000 } }]);
});
