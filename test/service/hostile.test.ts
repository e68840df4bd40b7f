import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { permissions } from '../../src/contract/definition.ts';
import { openService, type Service } from '../../src/service/service.ts';
import { sendRaw } from './raw-request.ts';
import { integrations, temporaryFolder } from './test-service.ts';

const key = 'a-key-for-the-hostile';
const folder = temporaryFolder();
let service: Service;
let port: number;
/** Of a listener that waits for no sender long. */
let hurried: number;

beforeAll(async () => {
  service = openService({ dataFolder: folder, clock: systemClock, integrations });
  service.seedKey(key, { organization: 'Local', permissions });
  const limits = { headersMs: 400, requestMs: 1_500, idleMs: 400 };
  ({ port } = await service.listen());
  ({ port: hurried } = await service.listen({ limits }));
});

afterAll(async () => {
  await service.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Whatever was sent before, the next one is served. */
async function isUp(at = port): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${at}/v1/auth.whoami`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: '{}',
    signal: AbortSignal.timeout(10_000),
  });
  return answer.status === 200;
}

function head(
  lines: string[],
  { method = 'POST', path = '/v1/auth.whoami', authorization = `Bearer ${key}` } = {},
) {
  const all = [`${method} ${path} HTTP/1.1`, 'Host: localhost', `Authorization: ${authorization}`].concat(
    'Content-Type: application/json',
    lines,
  );
  return `${all.join('\r\n')}\r\n\r\n`;
}

const megabyte = 1024 * 1024;

function* repeated(text: string, times: number) {
  for (let time = 0; time < times; time++) yield text;
}

function* announced(size: number, content: Iterable<string>) {
  yield head([`Content-Length: ${size}`]);
  yield* content;
}

function* chunked(content: Iterable<string>) {
  yield head(['Transfer-Encoding: chunked']);
  for (const text of content) yield `${text.length.toString(16)}\r\n${text}\r\n`;
  yield '0\r\n\r\n';
}

test.for([
  ['of announced length', () => announced(50 * megabyte, repeated(' '.repeat(megabyte), 50))],
  ['in chunks', () => chunked(repeated(' '.repeat(megabyte), 50))],
] as const)('50 MB %s are refused as too large', async ([, parts]) => {
  const answer = await sendRaw(port, parts());
  // Where the reset overtakes the answer, no answer is read; the refusal is the same.
  expect([413, undefined]).toContain(answer.status);
  if (answer.status) expect(JSON.parse(dechunked(answer.body))).toMatchObject({ _tag: 'PayloadTooLarge' });
  expect(await isUp()).toBe(true);
});

test('50 MB from somebody without a key are not waited for', async () => {
  const lines = [`Content-Length: ${50 * megabyte}`];
  const answer = await sendRaw(port, [head(lines, { authorization: 'Bearer unknown-key' })]);
  expect(answer.status).toBe(401);
  expect(await isUp()).toBe(true);
});

test.for([
  ['nested eight million deep', '['.repeat(8_000_000)],
  ['nested three hundred deep', `${'['.repeat(300)}${']'.repeat(300)}`],
  ['nested a hundred thousand objects deep', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`],
] as const)('a body that is %s is a decode error', async ([, body]) => {
  const lines = [`Content-Length: ${body.length}`, 'Connection: close'];
  const answer = await sendRaw(port, [head(lines, { path: '/v1/evals.start' }), body]);
  expect(answer.status).toBe(400);
  expect(JSON.parse(dechunked(answer.body))).toMatchObject({ _tag: 'HttpApiDecodeError' });
  expect(await isUp()).toBe(true);
});

test.for([
  ['ten million numbers', `[${'0,'.repeat(10_000_000)}0]`],
  ['a million empty lists', `[${'[[],[],[],[],[],[],[],[],[],[]],'.repeat(90_000)}0]`],
  ['lists nested two hundred deep', `${'['.repeat(200)}${']'.repeat(200)}`],
] as const)('a list of %s, which whoami allows, is answered or refused as too large', async ([, body]) => {
  const answer = await sendRaw(port, [head([`Content-Length: ${body.length}`, 'Connection: close']), body]);
  expect([200, 413]).toContain(answer.status);
  expect(await isUp()).toBe(true);
});

test.for([
  ['events', `"events":[${'{"_tag":"command"},'.repeat(120_000)}{}],"outcome":{}`],
  [
    'calls',
    `"events":[],"outcome":{"validations":[${`{"calls":[${'{},'.repeat(1_000)}{}]},`.repeat(150)}{}]}`,
  ],
] as const)(
  'a report whose every one of %s is wrong is refused within a bounded time and memory',
  async ([, wrong]) => {
    const body = `{"id":"run","trial":{"caseName":"c","ordinal":0,"taskIndex":0,${wrong}}}`;
    const lines = [`Content-Length: ${body.length}`, 'Connection: close'];
    const before = process.memoryUsage().heapTotal;
    const answer = await sendRaw(port, [head(lines, { path: '/v1/evals.reportTrial' }), body]);
    expect(answer.status).toBe(400);
    expect(answer.body.length).toBeLessThan(100_000);
    // With an issue for each, the events alone take more than 2 GB.
    expect(process.memoryUsage().heapTotal - before).toBeLessThan(1024 * megabyte);
    expect(await isUp()).toBe(true);
  },
);

test('a body of 15 MB for an operation that only reads is not waited for', async () => {
  const { secret } = service.createKey({ organization: 'Readers', permissions: ['evals:read'] });
  const lines = [`Content-Length: ${15 * megabyte}`];
  for (const path of ['/v1/auth.whoami', '/v1/evals.runs.list', '/v1/evals.baseline']) {
    const answer = await sendRaw(port, [head(lines, { path, authorization: `Bearer ${secret}` })]);
    expect([path, answer.status]).toEqual([path, 413]);
  }
  expect(await isUp()).toBe(true);
});

test.for([
  [9_000, 100],
  [120_000, 1],
] as const)('%i unknown fields are a short answer with %i of them', async ([count, most]) => {
  const names = Array.from({ length: count }, (_, index) => [`unknown-${index}`, 0]);
  const answer = await fetch(`http://127.0.0.1:${port}/v1/evals.start`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(Object.fromEntries(names)),
  });
  const text = await answer.text();
  expect([answer.status, JSON.parse(text).issues.length]).toEqual([400, most]);
  expect(text.length).toBeLessThan(10_000);
});

test('a connection serves the next request after a large body was refused unread', async () => {
  const refused = head([`Content-Length: ${5 * megabyte}`, 'Content-Encoding: gzip']);
  const next = head(['Content-Length: 2', 'Connection: close']);
  const { status, body } = await sendRaw(port, [refused, ...repeated(' '.repeat(megabyte), 5), next, '{}']);
  expect(status).toBe(415);
  expect(body).toContain('HTTP/1.1 200 ');
});

test('headers without end are cut off', async () => {
  for (const header of ['a: b\r\n', `long-header-name: ${'x'.repeat(200)}\r\n`]) {
    const answer = await sendRaw(port, [
      'POST /v1/auth.whoami HTTP/1.1\r\nHost: localhost\r\n',
      ...repeated(header, 20_000),
    ]);
    expect([408, 431, undefined]).toContain(answer.status);
    expect(await isUp()).toBe(true);
  }
});

test('two thousand headers do no harm', async () => {
  const answer = await sendRaw(port, [
    head(['Content-Length: 2', 'Connection: close', ...repeated('a:b', 2_000)]),
    '{}',
  ]);
  expect([200, 401, 415, 431]).toContain(answer.status);
  expect(await isUp()).toBe(true);
});

test('a sender that never ends its headers is sent away', async () => {
  const answer = await sendRaw(hurried, ['POST /v1/auth.whoami HTTP/1.1\r\nHost: localhost\r\nX-Slow: ']);
  expect([answer.status, JSON.parse(answer.body)]).toMatchObject([408, { _tag: 'RequestTimeout' }]);
});

test('a sender that never ends its body is sent away', async () => {
  const answer = await sendRaw(hurried, [head(['Content-Length: 100']), '{"half": ']);
  expect([answer.status, JSON.parse(answer.body)]).toMatchObject([408, { _tag: 'RequestTimeout' }]);
  expect(await isUp()).toBe(true);
});

test('a hundred senders that do nothing keep nobody else waiting', async () => {
  const idle = Array.from({ length: 100 }, () => sendRaw(hurried, ['POST /v1/auth.whoami HTTP/1.1\r\n']));
  expect(await isUp(hurried)).toBe(true);
  for (const { status } of await Promise.all(idle)) expect(status).toBe(408);
});

test.for([
  ['nothing that is HTTP', 'EHLO there\r\n\r\n', 400],
  ['binary noise', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400],
  ['a method that is none', 'BREW /v1/auth.whoami HTTP/1.1\r\nHost: localhost\r\n\r\n', 400],
  ['no Host', 'POST /v1/auth.whoami HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
  ['a Host that is none', 'POST /v1/auth.whoami HTTP/1.1\r\nHost: a b/c\r\nConnection: close\r\n\r\n', 400],
  ['a length and chunks at once', head(['Content-Length: 2', 'Transfer-Encoding: chunked']), 400],
  ['two lengths', head(['Content-Length: 2', 'Content-Length: 3']), 400],
  ['a negative length', head(['Content-Length: -2']), 400],
  ['a line break in a header', head(['X-A: b\rX-C: d', 'Connection: close']), 400],
  ['TRACE', head(['Connection: close'], { method: 'TRACE' }), 405],
  ['a path that climbs', head(['Connection: close'], { path: '/v1/../../etc/passwd' }), 404],
  ['a path with a NUL', head(['Connection: close'], { path: '/v1/%00' }), 404],
  ['a path of 10 KB', head(['Connection: close'], { path: `/v1/${'x'.repeat(10_000)}` }), 404],
] as const)('%s gets a bounded answer', async ([, bytes, status]) => {
  const answer = await sendRaw(port, [Buffer.from(bytes, 'latin1')]);
  expect(answer.status).toBe(status);
  expect(await isUp()).toBe(true);
});

test('a sender that goes away in the middle leaves the service up', async () => {
  for (let time = 0; time < 20; time++) {
    await fetch(`http://127.0.0.1:${port}/v1/auth.whoami`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: new ReadableStream({
        pull(controller) {
          controller.enqueue(new TextEncoder().encode('{"a":'));
          controller.error(new Error('gone'));
        },
      }),
      duplex: 'half',
    } as RequestInit).then(
      () => expect.fail('half a body was answered'),
      () => undefined,
    );
  }
  expect(await isUp()).toBe(true);
});

/** The content of a chunked body, or the body as it is. */
function dechunked(body: string): string {
  return /^[0-9a-f]+\r\n/.test(body) ? (body.split('\r\n')[1] ?? '') : body;
}
