import { expect, test } from 'vitest';
import { key, place, question, sessionRequest } from './gateway-fixture.ts';
import { sandboxOf } from './sandbox.ts';
import { chatAnswer, json } from './test-upstream.ts';

const answered = json(200, chatAnswer, { 'x-request-id': 'r1' });
const allWires = { wire: ['openai-chat', 'openai-responses', 'anthropic-messages'] };

test.for([
  ['authorization', (token: string) => `Bearer ${token}`],
  ['x-api-key', (token: string) => token],
  ['api-key', (token: string) => token],
] as const)('the token is accepted in %s', async ([header, shown]) => {
  await using at = await place({}, answered);
  const ask = (token: string) => at.sandbox.ask({ headers: { [header]: shown(token) }, body: question });
  expect(await ask(at.session.token('agent'))).toMatchObject({ status: 200 });
  expect(await ask(at.session.token('user'))).toMatchObject({ status: 404 });
  expect(await ask(key)).toMatchObject({ status: 401 });
});

test("another trial's token, and none, are answered with the wire's own 401", async () => {
  await using at = await place({}, answered);
  await using other = at.gateway.open(sessionRequest());
  const ask = (path: string, headers: object) =>
    at.sandbox.ask({ path, headers: { ...headers }, body: question });
  const theirs = { authorization: `Bearer ${other.token('agent')}` };
  expect(await ask('/v1/chat/completions', theirs)).toMatchObject({
    status: 401,
    body: { error: { code: 'invalid_api_key', type: 'invalid_request_error' } },
  });
  expect(await ask('/v1/messages', {})).toMatchObject({
    status: 401,
    body: { type: 'error', error: { type: 'authentication_error' } },
  });
  expect(await ask('/v1/models', {})).toMatchObject({ status: 404 });
  expect(at.upstream.received).toHaveLength(0);
});

test('a sandbox reaches only its own models, whatever the spelling', async () => {
  await using at = await place({ model: allWires }, answered);
  const ask = (body: object | string, path = '/v1/chat/completions') =>
    at.sandbox.ask({ path, headers: at.agent, body });
  for (const model of ['other', 'big-1', 'BIG', 'big ', 'constructor']) {
    expect(await ask({ model })).toMatchObject({ status: 404, body: { error: { code: 'model_not_found' } } });
  }
  expect(await ask({ model: 'other' }, '/v1/messages')).toMatchObject({
    status: 404,
    body: { error: { type: 'not_found_error' } },
  });
  for (const body of [
    '{"model":"big","model":"other"}',
    '{"model":"big","MODEL":"other"}',
    '{"model":"big","\\u006dodel":"other"}',
    '{"model":"big","toolſ":[]}',
    { model: 'big', models: ['other'] },
    { model: 'big', fallbacks: ['other'] },
    { model: ['big'] },
    { messages: [] },
    '["big"]',
    '{"model":"big"',
    '',
  ]) {
    expect(await ask(body), JSON.stringify(body)).toMatchObject({ status: 400 });
  }
  expect(at.upstream.received).toHaveLength(0);
  expect((await at.session.account()).exchanges.map(({ status }) => status)).toContain(404);
});

test('a wire that the model does not speak is translated, and what it cannot carry is refused in it', async () => {
  await using at = await place({}, answered);
  const ask = (body: object) => at.sandbox.ask({ path: '/v1/messages', headers: at.agent, body });
  expect(await ask(question)).toMatchObject({
    status: 200,
    body: { type: 'message', content: [{ type: 'text', text: 'hi' }] },
  });
  expect(at.upstream.received).toMatchObject([{ path: '/v1/chat/completions' }]);
  const answer = await ask({ ...question, tools: [{ type: 'computer_20250124', name: 'computer' }] });
  expect(answer).toMatchObject({
    status: 400,
    body: { type: 'error', error: { type: 'invalid_request_error' } },
  });
  expect(answer.body.error.message).toContain('"tools[].type"');
  expect(at.upstream.received).toHaveLength(1);
});

test("models are listed in their maker's shape, and no others", async () => {
  await using at = await place({}, answered);
  const get = (path: string, headers = {}) =>
    at.sandbox.ask({ method: 'GET', path, headers: { ...at.agent, ...headers } });
  const version = { 'anthropic-version': '2023-06-01' };
  expect((await get('/v1/models')).body.data.map(({ id }: { id: string }) => id)).toEqual(['big', 'large']);
  expect((await get('/models', version)).body).toMatchObject({
    data: [{ type: 'model', id: 'big' }, {}],
    has_more: false,
  });
  expect((await get('/v1/models/large')).body).toMatchObject({ id: 'large', object: 'model' });
  expect(await get('/v1/models/other')).toMatchObject({ status: 404 });
});

test('paths that belong to no wire are 404', async () => {
  await using at = await place({ model: allWires }, answered);
  const paths = ['/v1/embeddings', '/v1/responses/resp_1', '/v1/v1/messages', '/constructor'];
  for (const path of paths) {
    expect(await at.sandbox.ask({ path, headers: at.agent, body: question }), path).toMatchObject({
      status: 404,
    });
  }
  expect(await at.sandbox.ask({ method: 'DELETE', headers: at.agent })).toMatchObject({ status: 404 });
  expect(await at.sandbox.ask({ method: 'HEAD', path: '/' })).toMatchObject({ status: 200 });
  expect(at.upstream.received).toHaveLength(0);
});

test('an absolute URL goes to the proxy, except the relay’s own address in any spelling', async () => {
  await using at = await place({}, answered, answered);
  const ask = (path: string) => at.sandbox.ask({ path, headers: at.agent, body: question });
  for (const origin of ['http://127.0.0.1:19734', 'HTTP://LocalHost:19734']) {
    expect(await ask(`${origin}/v1/chat/completions`), origin).toMatchObject({ status: 200 });
  }
  for (const origin of ['http://127.0.0.1', 'http://model', 'http://x@127.0.0.1:19734']) {
    expect((await ask(`${origin}/v1/chat/completions`)).status, origin).toBeOneOf([400, 403]);
  }
  for (const path of ['ftp://model/v1/chat/completions', 'https://model/', '*', 'v1/chat/completions']) {
    expect(await ask(path), path).toMatchObject({ status: 400 });
  }
  expect(at.upstream.received).toHaveLength(2);
});

test('whatever host a request names, it goes to the model', async () => {
  await using at = await place({}, answered);
  const headers = { ...at.agent, host: 'elsewhere.example', 'x-forwarded-host': 'evil' };
  expect(await at.sandbox.ask({ headers, body: question })).toMatchObject({ status: 200 });
  expect(at.upstream.received[0]?.headers.host).toBe(`127.0.0.1:${at.upstream.port}`);
});

test('a closed session answers 400 in every wire, and ends what is in flight', async () => {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  await using at = await place({ model: allWires }, () => resolve());
  const pending = at.sandbox.ask({ headers: at.agent, body: question });
  await asked;
  at.session.close('the trial has run out of time');
  expect(await pending).toMatchObject({ status: 400, body: { error: { code: 'session_closed' } } });
  const later = await at.sandbox.ask({ path: '/v1/messages', headers: at.agent, body: question });
  expect(later).toMatchObject({ status: 400, body: { error: { message: 'the trial has run out of time' } } });
  expect(await at.session.account()).toMatchObject({
    failure: undefined,
    exchanges: [{ status: 400, failure: 'the trial has run out of time', usage: {} }],
  });
});

test('each session serves its own tokens only', async () => {
  await using at = await place({}, answered);
  await using other = at.gateway.open(sessionRequest());
  await using sandbox = sandboxOf(other);
  expect(await sandbox.ask({ headers: at.agent, body: question })).toMatchObject({ status: 401 });
  const own = { authorization: `Bearer ${other.token('agent')}` };
  expect(await sandbox.ask({ headers: own, body: question })).toMatchObject({ status: 200 });
});

test('a model without its key, or that is not configured, is an input error when it is asked for', async () => {
  await using at = await place({
    models: { keyless: { apiKeyEnv: 'ABSENT' }, odd: { baseUrl: 'http://a:b@localhost/v1' } },
  });
  const open = (name: string) => () =>
    at.gateway.open(sessionRequest(undefined, { models: { agent: [name] } }));
  expect(open('keyless')).toThrow(expect.objectContaining({ code: 'MODEL_KEY_MISSING', kind: 'input' }));
  expect(open('nope')).toThrow(expect.objectContaining({ code: 'MODEL_UNKNOWN', kind: 'input' }));
  expect(open('odd')).toThrow(expect.objectContaining({ code: 'MODEL_URL_INVALID', kind: 'input' }));
});
