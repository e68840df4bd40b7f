import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { key, place, question } from './gateway-fixture.ts';
import { chatAnswer } from './test-upstream.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'offsite-tls-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const authority = (names: string) => `subjectAltName=${names}\nbasicConstraints=critical,CA:TRUE\n`;

/** Makes a certificate and its key. Without an issuer, it is its own. */
async function certificate(
  name: string,
  { issuer, extensions, days = '2' }: { issuer?: string; extensions: string; days?: string | undefined },
): Promise<[certificate: string, key: string]> {
  const run = execa({ cwd: folder });
  await run`openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=${name} -keyout ${name}.key -out ${name}.csr`;
  await writeFile(join(folder, `${name}.ext`), extensions);
  const by =
    issuer === undefined
      ? ['-signkey', `${name}.key`]
      : ['-CA', `${issuer}.pem`, '-CAkey', `${issuer}.key`, '-CAcreateserial'];
  await run`openssl x509 -req -in ${name}.csr ${by} -days ${days} -extfile ${name}.ext -out ${name}.pem`;
  const read = (ending: string) => readFile(join(folder, `${name}.${ending}`), 'utf8');
  return [await read('pem'), await read('key')];
}

test('a model behind an HTTP proxy with its own CA file is reached; a missing file is reported', async () => {
  await using stack = new AsyncDisposableStack();
  const [cert, privateKey] = await certificate('model.test', { extensions: authority('DNS:model.test') });
  const authorizations: unknown[] = [];
  const server = createHttpsServer({ key: privateKey, cert }, (request, response) => {
    authorizations.push(request.headers.authorization);
    request.resume();
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(chatAnswer));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stack.defer(() => {
    server.closeAllConnections();
    server.close();
  });

  const heads: string[] = [];
  const proxy = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', (head) => {
      heads.push(`${head}`);
      const onward = connect((server.address() as AddressInfo).port, '127.0.0.1');
      onward.on('error', () => socket.destroy());
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(onward).pipe(socket);
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  stack.defer(() => void proxy.close());

  const env = { MODEL_KEY: key, HTTPS_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` };
  const model = { baseUrl: 'https://model.test/v1' };
  await using at = await place({ model, gateway: { env, caBundle: cert } });
  expect(await at.sandbox.ask({ headers: at.agent, body: question })).toMatchObject({
    status: 200,
    body: chatAnswer,
  });
  expect(authorizations).toEqual([`Bearer ${key}`]);
  expect(heads.join('')).toContain('CONNECT model.test:443');
  expect(heads.join('')).not.toContain(key);

  await using untrusting = await place({ model, gateway: { env } });
  const refused = await untrusting.sandbox.ask({ headers: untrusting.agent, body: question });
  expect(refused).toMatchObject({ status: 502 });
  expect(refused.body.error.message).toContain('caBundle');
  expect(authorizations).toHaveLength(1);
});

let root: string;
let middle: string;
beforeAll(async () => {
  const extensions = 'basicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign\n';
  [root] = await certificate('root', { extensions });
  [middle] = await certificate('middle', { issuer: 'root', extensions });
});

const hints: [string, { chain?: true; names?: string; days?: string }, string][] = [
  ['an authority that is not known, with an intermediate', { chain: true }, 'Set advanced.caBundle'],
  ['another host name', { names: 'DNS:other.test' }, 'Its certificate is for other names'],
  ['a time that is over', { days: '-1' }, 'check the clock'],
];

test.for(hints)(
  'a certificate with %s is told with what to do, and not tried again',
  async ([, how, hint]) => {
    await using stack = new AsyncDisposableStack();
    const extensions = `subjectAltName=${how.names ?? 'DNS:localhost'}\n`;
    const [leaf, privateKey] = await certificate('leaf', { issuer: 'middle', extensions, days: how.days });
    const server = createHttpsServer({ key: privateKey, cert: `${leaf}${middle}` }, (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(chatAnswer));
    });
    let connections = 0;
    server.on('connection', () => {
      connections += 1;
    });
    server.on('tlsClientError', () => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    stack.defer(() => {
      server.closeAllConnections();
      server.close();
    });
    const model = { baseUrl: `https://localhost:${(server.address() as AddressInfo).port}/v1` };
    const trusting = how.chain ? {} : { caBundle: root };
    await using at = await place({ model, gateway: { ...trusting, env: { MODEL_KEY: key } } });
    const answer = await at.sandbox.ask({ headers: at.agent, body: question });
    expect(answer).toMatchObject({ status: 502 });
    expect(answer.body.error.message).toContain(hint);
    expect(connections).toBe(1);
    if (!how.chain) return;
    await using knowing = await place({ model, gateway: { caBundle: root, env: { MODEL_KEY: key } } });
    expect(await knowing.sandbox.ask({ headers: knowing.agent, body: question })).toMatchObject({
      status: 200,
    });
  },
);
