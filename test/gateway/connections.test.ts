import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { key, place, question } from './gateway-fixture.ts';
import { chatAnswer } from './test-upstream.ts';

test('a model behind an HTTP proxy with its own CA file is reached; a missing file is reported', async () => {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'offsite-gateway-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  await execa({
    cwd: folder,
  })`openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=model.test -addext subjectAltName=DNS:model.test -keyout key.pem -out cert.pem`;
  const [privateKey, cert] = await Promise.all(
    ['key.pem', 'cert.pem'].map((name) => readFile(join(folder, name), 'utf8')),
  );
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
  await using at = await place({ model, gateway: { env, ...(cert && { caBundle: cert }) } });
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

const hints: [string, { chain?: true; names?: string; days?: string }, string][] = [
  ['an authority that is not known, with an intermediate', { chain: true }, 'Set advanced.caBundle'],
  ['another host name', { names: 'DNS:other.test' }, 'Its certificate is for other names'],
  ['a time that is over', { days: '-1' }, 'check the clock'],
];

test.for(hints)(
  'a certificate with %s is told with what to do, and not tried again',
  async ([, how, hint]) => {
    await using stack = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), 'offsite-tls-'));
    stack.defer(() => rm(folder, { recursive: true, force: true }));
    const run = execa({ cwd: folder });
    const make = async (name: string, issuer: string | undefined, extensions: string, days = '2') => {
      await run`openssl req -newkey rsa:2048 -nodes -subj /CN=${name} -keyout ${name}.key -out ${name}.csr`;
      await writeFile(join(folder, `${name}.ext`), extensions);
      const by =
        issuer === undefined
          ? ['-signkey', `${name}.key`]
          : ['-CA', `${issuer}.pem`, '-CAkey', `${issuer}.key`, '-CAcreateserial'];
      await run`openssl x509 -req -in ${name}.csr ${by} -days ${days} -extfile ${name}.ext -out ${name}.pem`;
    };
    await make('root', undefined, 'basicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign\n');
    await make('middle', 'root', 'basicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign\n');
    await make('leaf', 'middle', `subjectAltName=${how.names ?? 'DNS:localhost'}\n`, how.days);
    const read = (name: string) => readFile(join(folder, name), 'utf8');
    const [leaf, middle, root, privateKey] = await Promise.all(
      ['leaf.pem', 'middle.pem', 'root.pem', 'leaf.key'].map(read),
    );
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
