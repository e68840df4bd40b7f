import { expect, test } from 'vitest';
import { place, question } from '../gateway/gateway-fixture.ts';
import { chatAnswer, json } from '../gateway/test-upstream.ts';

/** An agent sends headers that routers and proxies between the gateway and its model act on. */

const answered = json(200, chatAnswer);
const wire = ['openai-chat', 'openai-responses', 'anthropic-messages'];

/** What a request to a model carries whatever its client sent. */
const always = ['host', 'connection', 'content-type', 'content-length', 'accept-encoding', 'authorization'];

const steering = {
  'x-http-method-override': 'DELETE',
  'x-http-method': 'DELETE',
  'x-method-override': 'DELETE',
  'x-original-url': '/v1/files',
  'x-original-host': 'other.example',
  'x-rewrite-url': '/v1/files',
  'helicone-target-url': 'https://other.example',
  'helicone-auth': 'Bearer x',
  'cf-aig-authorization': 'x',
  'x-portkey-config': '{"provider":"other"}',
  'x-litellm-tags': 'a',
  'x-amz-security-token': 'a',
  'x-ms-client-principal': 'a',
  'api-version': '2020',
  range: 'bytes=0-1',
  'if-none-match': '"a"',
  'cache-control': 'no-store',
  prefer: 'respond-async',
  'x-anything-else': 'a',
  'sec-fetch-mode': 'cors',
  'accept-language': '*',
  // Credentials and tracing of the sandbox's own.
  'api-key': 'x',
  cookie: 'a=b',
  'proxy-authorization': 'x',
  'openai-organization': 'theirs',
  traceparent: '00-1-1-01',
  baggage: 'a=b',
  'x-forwarded-for': '1.2.3.4',
  'x-offsite-trial': '1',
};

test('of the headers of a client, and of the answer, only those on the list are passed on', async () => {
  const dropped = { 'set-cookie': 'a=b', 'openai-organization': 'org' };
  await using at = await place({}, json(200, chatAnswer, dropped));
  const passed = {
    accept: 'text/event-stream',
    'user-agent': 'cli/1',
    'anthropic-version': '2023-06-01',
    'anthropic-beta': 'interleaved-thinking-2025-05-14,effort-2025-11-24',
    'openai-beta': 'responses=experimental',
    'idempotency-key': 'a-1',
    'x-client-request-id': 'r-1',
    'x-stainless-retry-count': '0',
  };
  const headers = { ...at.agent, ...steering, ...passed, 'accept-encoding': 'gzip, br' };
  const answer = await at.sandbox.ask({ headers, body: question });
  expect(answer.status).toBe(200);
  for (const name of Object.keys(dropped)) expect(answer.headers[name], name).toBeUndefined();
  const [received] = at.upstream.received;
  expect(received?.headers).toMatchObject({ ...passed, 'accept-encoding': 'identity' });
  expect(Object.keys(received?.headers ?? {}).toSorted()).toEqual(
    [...always, ...Object.keys(passed)].toSorted(),
  );
});

test('a header with a value that its kind does not have is left out', async () => {
  await using at = await place({}, answered);
  const odd = {
    'anthropic-version': '2023-06-01\tx',
    'anthropic-beta': 'a; b={"c":1}',
    accept: `a/${'b'.repeat(5_000)}`,
  };
  expect(await at.sandbox.ask({ headers: { ...at.agent, ...odd }, body: question })).toMatchObject({
    status: 200,
  });
  for (const name of Object.keys(odd)) expect(at.upstream.received[0]?.headers[name], name).toBeUndefined();
});

test.for([
  ['/v1/messages?beta=true', '/v1/messages?beta=true'],
  ['/v1/messages?beta=true&beta=false', '/v1/messages'],
  ['/v1/messages?beta=true&provider=other', '/v1/messages?beta=true'],
  ['/v1/messages?beta=true%26model=other', '/v1/messages'],
  ['/v1/messages/count_tokens?beta=true', '/v1/messages/count_tokens?beta=true'],
  ['/v1/chat/completions?api-version=x&model=other', '/v1/chat/completions'],
  ['/v1/chat/completions?/../../files', '/v1/chat/completions'],
  ['/v1/responses?beta=true', '/v1/responses'],
])('%s is asked for as %s', async ([path, sent]) => {
  await using at = await place({ model: { wire } }, answered);
  expect(await at.sandbox.ask({ path, headers: at.agent, body: question })).toMatchObject({ status: 200 });
  expect(at.upstream.received[0]).toMatchObject({ method: 'POST', path: sent });
});

test.for(['/v1/chat%2fcompletions', '/v1/x/../chat/completions', '//v1/messages'])(
  '%s leads nowhere',
  async (path) => {
    await using at = await place({ model: { wire } }, answered);
    expect((await at.sandbox.ask({ path, headers: at.agent, body: question })).status).toBe(404);
    expect(at.upstream.received).toHaveLength(0);
  },
);
