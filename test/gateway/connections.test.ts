import { mkdtemp, readFile, rm } from 'node:fs/promises';
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
