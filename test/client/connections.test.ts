import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { clientOf, errorOf, startRequest } from './client-of.ts';
import { json, scriptedService, secureScriptedService, whoami } from './scripted-service.ts';
import { testClock } from './test-clock.ts';

interface Authority {
  ca: string;
  key: string;
  cert: string;
}

let folder: string;
let authority: Authority;

/** An authority of our own, and a certificate it gave to localhost and to service.test. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'offsite-client-'));
  const openssl = execa({ cwd: folder });
  await openssl`openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=Test -keyout ca.key -out ca.pem`;
  await openssl`openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout service.key -out service.csr -addext subjectAltName=DNS:localhost,DNS:service.test`;
  await openssl`openssl x509 -req -in service.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copy -out service.pem`;
  const read = (name: string) => readFile(join(folder, name), 'utf8');
  authority = { ca: await read('ca.pem'), key: await read('service.key'), cert: await read('service.pem') };
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test('a service whose authority is given as an extra CA is trusted, and else refused at once with what to do', async () => {
  await using service = await secureScriptedService(authority, json(200, whoami));
  const url = `https://localhost:${service.port}`;
  await using trusting = clientOf({ url }, { caBundle: authority.ca });
  expect(await trusting.call('auth.whoami', {})).toEqual(whoami);

  await using other = clientOf({ url });
  const error = await errorOf(other.call('evals.start', startRequest));
  expect(error).toMatchObject({ code: 'CLIENT_CERTIFICATE_UNTRUSTED', sent: false, attempts: 1 });
  expect(error.hint).toContain('extra CA file');
});

test('a certificate for another name is refused though its authority is trusted', async () => {
  await using service = await secureScriptedService(authority, json(200, whoami));
  await using client = clientOf({ url: `https://127.0.0.1:${service.port}` }, { caBundle: authority.ca });
  expect(await errorOf(client.call('auth.whoami', {}))).toMatchObject({
    code: 'CLIENT_CERTIFICATE_UNTRUSTED',
  });
  expect(service.received).toHaveLength(0);
});

test('https to a port that speaks plain http fails with a hint', async () => {
  await using service = await scriptedService(json(200, whoami));
  await using client = clientOf({ url: `https://127.0.0.1:${service.port}` }, { retry: { attempts: 1 } });
  const error = await errorOf(client.call('auth.whoami', {}));
  expect(error).toMatchObject({ code: 'CLIENT_UNREACHABLE', hint: 'Does that port speak plain http?' });
});

test('a CA file without a certificate is an input error', () => {
  const make = () =>
    createClient({
      url: 'https://evals.example',
      apiKey: 'k',
      clock: testClock(),
      caBundle: 'not a certificate',
    });
  expect(make).toThrow(expect.objectContaining({ code: 'CLIENT_CA_INVALID', kind: 'input' }));
});

interface Proxy extends AsyncDisposable {
  url: string;
  /** The first line and headers of each request. */
  heads: string[];
}

interface ProxyManners {
  answer?: string;
  /** Resolves when the proxy may answer. */
  mayAnswer?: Promise<unknown>;
}

/** A CONNECT proxy on this machine: whatever host is asked for, it leads to `port` here. */
async function proxyTo(port: number, manners: ProxyManners = {}): Promise<Proxy> {
  const { answer = 'HTTP/1.1 200 Connection established\r\n\r\n', mayAnswer } = manners;
  const heads: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('data', async (head) => {
      heads.push(head.toString());
      await mayAnswer;
      socket.write(answer);
      if (!answer.includes(' 200 ')) return;
      const upstream = connect(port, '127.0.0.1');
      sockets.add(upstream);
      upstream.on('error', () => socket.destroy());
      socket.pipe(upstream).pipe(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    heads,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

for (const variable of ['HTTPS_PROXY', 'https_proxy']) {
  test(`an https service is reached through ${variable}, which sees neither the key nor the request`, async () => {
    await using service = await secureScriptedService(authority, json(200, whoami));
    await using proxy = await proxyTo(service.port);
    const env = { [variable]: proxy.url.replace('//', '//user:pass@') };
    await using client = clientOf({ url: 'https://service.test' }, { caBundle: authority.ca, env });
    expect(await client.call('auth.whoami', {})).toEqual(whoami);
    expect(proxy.heads).toHaveLength(1);
    expect(proxy.heads[0]).toMatch(/^CONNECT service\.test:443 HTTP\/1\.1\r\n/);
    expect(proxy.heads[0]).toMatch(/proxy-authorization: Basic dXNlcjpwYXNz/i);
    expect(proxy.heads[0]).not.toMatch(/bearer|whoami/i);
    expect(service.received[0]?.headers.authorization).toMatch(/^Bearer /);
  });
}

test('a start through a proxy works, and one that the proxy turns away was certainly not sent', async () => {
  await using service = await secureScriptedService(authority, json(200, { id: 'batch', runs: [] }));
  await using proxy = await proxyTo(service.port);
  await using refusing = await proxyTo(service.port, {
    answer: 'HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n',
  });
  const settings = { caBundle: authority.ca, retry: { attempts: 2 } };
  await using through = clientOf(
    { url: 'https://service.test' },
    { ...settings, env: { HTTPS_PROXY: proxy.url } },
  );
  expect(await through.call('evals.start', startRequest)).toMatchObject({ id: 'batch' });
  await using against = clientOf(
    { url: 'https://service.test' },
    { ...settings, env: { HTTPS_PROXY: refusing.url } },
  );
  const error = await errorOf(against.call('evals.start', startRequest));
  expect(error).toMatchObject({ code: 'CLIENT_UNREACHABLE', sent: false, attempts: 2 });
  expect(error.message).toContain('403');
});

test('a start that still waits for the proxy when its deadline passes is never sent, even if the way opens later', async () => {
  await using service = await secureScriptedService(authority, json(200, { id: 'batch', runs: [] }));
  const way = Promise.withResolvers<void>();
  await using proxy = await proxyTo(service.port, { mayAnswer: way.promise });
  const clock = testClock();
  await using client = clientOf(
    { url: 'https://service.test' },
    { clock, caBundle: authority.ca, env: { HTTPS_PROXY: proxy.url }, retry: { attempts: 1 } },
  );
  const error = errorOf(client.call('evals.start', startRequest));
  await expect.poll(() => proxy.heads.length).toBe(1);
  clock.expire(100_000);
  expect(await error).toMatchObject({ name: 'DeadlineExceeded', code: 'CLIENT_ATTEMPT_DEADLINE' });
  way.resolve();
  await expect.poll(() => service.connected).toBe(1);
  await expect.poll(() => service.open.size).toBe(0);
  expect(service.received).toHaveLength(0);
});

test('NO_PROXY is respected, and this machine is never reached through a proxy', async () => {
  await using service = await secureScriptedService(authority, json(200, whoami));
  await using proxy = await proxyTo(service.port);
  const env = { HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url };
  await using local = clientOf({ url: `https://localhost:${service.port}` }, { caBundle: authority.ca, env });
  expect(await local.call('auth.whoami', {})).toEqual(whoami);
  // Port 1 of a reserved address of this machine's own: refused at once where the proxy is passed by.
  await using exempt = clientOf(
    { url: 'https://0.0.0.0:1' },
    { env: { ...env, NO_PROXY: 'example.com, 0.0.0.0' }, retry: { attempts: 1 } },
  );
  expect(await errorOf(exempt.call('auth.whoami', {}))).toMatchObject({ code: 'CLIENT_UNREACHABLE' });
  expect(proxy.heads).toEqual([]);
});

test('a proxy for https is not used for http, nor the process’s own environment where none is given', async () => {
  await using service = await scriptedService(json(200, whoami));
  await using proxy = await proxyTo(service.port);
  const before = process.env.HTTP_PROXY;
  process.env.HTTP_PROXY = proxy.url;
  try {
    const url = 'http://0.0.0.0:1';
    const settings = { insecureHttp: true, retry: { attempts: 1 } };
    await using otherProtocol = clientOf({ url }, { ...settings, env: { HTTPS_PROXY: proxy.url } });
    await using noEnvironment = clientOf({ url }, settings);
    expect(await errorOf(otherProtocol.call('auth.whoami', {}))).toMatchObject({
      code: 'CLIENT_UNREACHABLE',
    });
    expect(await errorOf(noEnvironment.call('auth.whoami', {}))).toMatchObject({
      code: 'CLIENT_UNREACHABLE',
    });
    expect(proxy.heads).toEqual([]);
  } finally {
    if (before === undefined) delete process.env.HTTP_PROXY;
    else process.env.HTTP_PROXY = before;
  }
});

test('plain http that was allowed goes through HTTP_PROXY as the proxy expects it', async () => {
  await using proxy = await scriptedService(json(200, whoami));
  const env = { HTTP_PROXY: proxy.url.replace('http://', '') };
  await using client = clientOf({ url: 'http://service.test/base' }, { insecureHttp: true, env });
  expect(await client.call('auth.whoami', {})).toEqual(whoami);
  expect(proxy.received[0]).toMatchObject({ path: 'http://service.test/base/v1/auth.whoami' });
});

test('a proxy address that is none is an input error that does not show it', () => {
  const make = (HTTPS_PROXY: string) => () =>
    createClient({ url: 'https://evals.example', apiKey: 'k', clock: testClock(), env: { HTTPS_PROXY } });
  for (const value of [
    'http://user:hunter2@',
    'socks5://user:hunter2@proxy:1080',
    'http://user:hunter2@ho st',
  ]) {
    expect(make(value)).toThrow(expect.objectContaining({ code: 'CLIENT_PROXY_INVALID', kind: 'input' }));
    expect(make(value)).not.toThrow('hunter2');
  }
});
