import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { DecodeErrorBody } from '../../src/contract/errors.ts';
import { operations } from '../../src/contract/operations.ts';
import { openTestService, report, startRequest, startRun, type TestService } from './test-service.ts';

const url = 'http://service.test/v1/auth.whoami';

function send(
  { service, key }: TestService,
  init: RequestInit & { headers?: Record<string, string> },
  to = url,
) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...init.headers };
  return service.fetch(new Request(to, { method: 'POST', body: '{}', ...init, headers }));
}

test('a path that is not of the service is not found, with a body', async () => {
  await using service = openTestService();
  for (const path of [
    '/',
    '/v1',
    '/v1/evals.stop',
    '/v1/evals.start/',
    '/v2/auth.whoami',
    '/v1/constructor',
    '/v1/%ff',
  ]) {
    const answer = await send(service, {}, `http://service.test${path}`);
    expect([answer.status, await answer.json()]).toEqual([
      404,
      { _tag: 'NotFound', message: expect.any(String) },
    ]);
  }
});

test('another method than POST is told which one to use', async () => {
  await using service = openTestService();
  for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
    const answer = await send(service, { method, body: null });
    expect([answer.status, answer.headers.get('allow'), await answer.json()]).toEqual([
      405,
      'POST',
      { _tag: 'MethodNotAllowed', message: 'Use POST here.' },
    ]);
  }
  expect((await send(service, {}, 'http://service.test/openapi.json')).headers.get('allow')).toBe(
    'GET, HEAD',
  );
});

test('a request without a usable key is told where to authenticate', async () => {
  await using service = openTestService();
  for (const authorization of [
    '',
    'Bearer',
    'Bearer ',
    'Basic dXNlcjpwYXNz',
    'Bearer no-such-key',
    service.key,
  ]) {
    const answer = await send(service, { headers: { authorization } });
    expect([answer.status, await answer.json()]).toEqual([
      401,
      { _tag: 'Unauthorized', message: expect.any(String) },
    ]);
    const challenge = answer.headers.get('www-authenticate');
    expect(challenge).toMatch(/^Bearer realm="offsite"/);
    const metadata = challenge?.match(/resource_metadata="([^"]+)"/)?.[1] ?? '';
    const where = await service.service.fetch(new Request(metadata));
    expect(await where.json()).toMatchObject({
      resource: 'http://service.test/',
      bearer_methods_supported: ['header'],
    });
  }
});

test('every operation that needs a permission refuses a key without it, and works for one with it', async () => {
  await using service = openTestService();
  for (const [name, { permission }] of Object.entries(operations)) {
    if (!permission) continue;
    const without = await service.ask(name, {}, service.keyFor('Acme'));
    expect([without.status, without.body]).toEqual([
      403,
      { _tag: 'Forbidden', message: `The API key lacks the permission ${permission}.` },
    ]);
    expect((await service.ask(name, {}, service.keyFor('Acme', permission))).status).not.toBe(403);
  }
});

test('who asks is looked at before what is asked', async () => {
  await using service = openTestService();
  const nonsense = { body: 'not json', headers: { 'content-type': 'text/plain' } };
  const start = 'http://service.test/v1/evals.start';
  const statusFor = async (authorization: string) =>
    (await send(service, { ...nonsense, headers: { ...nonsense.headers, authorization } }, start)).status;
  expect(await statusFor('Bearer wrong-key')).toBe(401);
  expect(await statusFor(`Bearer ${service.keyFor('Acme', 'evals:read')}`)).toBe(403);
  expect(await statusFor(`Bearer ${service.key}`)).toBe(415);
});

test('a body that is not said to be JSON is refused', async () => {
  await using service = openTestService();
  const wrong: Record<string, string>[] = [
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'application/json; charset=latin1' },
    { 'content-encoding': 'gzip' },
  ];
  for (const headers of wrong) {
    const answer = await send(service, { headers });
    expect([answer.status, await answer.json()]).toMatchObject([415, { _tag: 'UnsupportedMediaType' }]);
  }
  for (const type of ['application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"']) {
    expect((await send(service, { headers: { 'content-type': type } })).status).toBe(200);
  }
});

test('whoami, and no other operation, takes a request without a body', async () => {
  await using service = openTestService();
  const { port } = await service.service.listen();
  const headers = { authorization: `Bearer ${service.key}` };
  const json = { 'content-type': 'application/json' };
  const ask = async (operation: string, init: RequestInit) =>
    (await fetch(`http://127.0.0.1:${port}/v1/${operation}`, { method: 'POST', headers, ...init })).status;
  expect(await ask('auth.whoami', {})).toBe(200);
  expect(await ask('auth.whoami', { headers: { ...headers, ...json } })).toBe(200);
  expect(await ask('auth.whoami', { body: '[]', headers: { ...headers, ...json } })).toBe(200);
  expect(await ask('auth.whoami', { body: '{}' })).toBe(415);
  const streamed = { body: new Blob(['{}']).stream(), duplex: 'half' } as RequestInit;
  expect(await ask('auth.whoami', streamed)).toBe(415);
  expect(await ask('connectors.integrations', {})).toBe(415);
  expect(await ask('connectors.integrations', { headers: { ...headers, ...json } })).toBe(400);
});

test.for([
  ['nothing', ''],
  ['half a JSON', '{"a":'],
  ['bad UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ['half a character', new Uint8Array([0x22, 0xe2, 0x82, 0x22])],
  ['a NUL byte', '{}\0'],
] as const)('a body of %s is a decode error with one issue', async ([, body]) => {
  await using service = openTestService();
  const answer = await send(service, { body }, 'http://service.test/v1/connectors.integrations');
  expect(answer.status).toBe(400);
  const { issues } = DecodeErrorBody.parse(await answer.json());
  expect(issues).toEqual([{ _tag: 'Type', path: [], message: expect.any(String) }]);
});

test('a failure of ours tells the sender a request id and the log everything', async () => {
  await using service = openTestService();
  const run = await startRun(service);
  using database = new DatabaseSync(join(service.folder, 'service.db'));
  database.exec('ALTER TABLE trials RENAME TO lost');
  const answer = await service.ask('evals.reportTrial', report(run));
  expect(answer.status).toBe(500);
  const requestId = answer.headers.get('x-request-id');
  expect(answer.body).toEqual({
    _tag: 'InternalError',
    message: `The service failed. Its log has the details under ${requestId}.`,
  });
  const line = service.logged.map((text) => JSON.parse(text)).find(({ err }) => err);
  expect(line).toMatchObject({
    requestId,
    err: { message: expect.stringContaining('trials'), stack: expect.any(String) },
  });

  database.exec('ALTER TABLE lost RENAME TO trials');
  await service.succeed('evals.reportTrial', report(run));
  await service.succeed('evals.start', startRequest());
});
