import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { Duplex, duplexPair } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { execa } from 'execa';
import { describe, expect, test } from 'vitest';
import { answerLast } from '../../../src/gateway/relay/relay.ts';
import { serveRelay } from '../../../src/gateway/relay/serve.ts';
import { openSharedSocket, socketName } from '../../../src/gateway/relay/sidecar.ts';

test('a client that pipelines thousands of requests has a limited number in flight', async () => {
  const waiting: ServerResponse[] = [];
  const [inside, outside] = duplexPair();
  const session = serveRelay(outside, {
    request: (_request, response) => waiting.push(response),
    connect: (_request, client) => client.destroy(),
  });
  const http2 = connect('http://gateway', { createConnection: () => inside });
  const client = http2.request({ ':method': 'CONNECT', ':authority': 'gateway' }, { endStream: false });
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(3000));
  await expect.poll(() => waiting.length).toBe(1024);
  const said = text(client);
  for (const response of waiting) response.end('served\n');
  const answers = (await said).match(/^HTTP\/1.1 \d+/gm) ?? [];
  expect(answers.filter((line) => line === 'HTTP/1.1 200')).toHaveLength(1024);
  expect(answers.filter((line) => line === 'HTTP/1.1 503')).toHaveLength(1);
  http2.destroy();
  session.destroy();
});

test('a relay whose output ended can be ended too, though its input never ends', async () => {
  // As a connection over TLS that is cut: its own end waits for the other side.
  const stdio = new Duplex({
    read: () => undefined,
    write: (_bytes, _encoding, done) => done(),
    final: () => undefined,
  });
  const session = serveRelay(stdio, { request: () => undefined, connect: () => undefined });
  const closed = once(session, 'close');
  stdio.push(null);
  await once(stdio, 'end');
  await setImmediate();
  session.destroy();
  await closed;
  expect(stdio.destroyed).toBe(true);
});

test('a relay that is gone before it is served is over', async () => {
  const [, stdio] = duplexPair();
  await once(stdio.destroy(), 'close');
  await once(serveRelay(stdio, { request: () => undefined, connect: () => undefined }), 'close');
});

test.for(['with-length', 'without'])(
  'heads and bodies written together arrive as they are, %s',
  async (how) => {
    const script = new URL('asking-many.ts', import.meta.url).pathname;
    const { stdout } = await execa(process.execPath, [script, how]);
    expect(stdout).toBe('2500');
  },
);

describe('over the shared socket', () => {
  /** Serves the shared socket. Everything is answered for the last time, but `/held`. */
  async function served() {
    const shared = await openSharedSocket();
    const [, outside] = duplexPair();
    const asked: ServerResponse[] = [];
    const session = serveRelay(
      outside,
      {
        request({ url }, response) {
          asked.push(response);
          if (url !== '/held') response.writeHead(200, { connection: 'close' }).end('served\n');
        },
        connect: (_request, client) => answerLast(client, 403, 'refused'),
      },
      shared?.server,
    );
    return {
      asked,
      connect: () => connectSocket({ path: join(shared?.folder ?? '', socketName), allowHalfOpen: true }),
      count: () =>
        promisify((done: (error: Error | null, count: number) => void) =>
          shared?.server.getConnections(done),
        )(),
      async [Symbol.asyncDispose]() {
        session.destroy();
        await shared?.[Symbol.asyncDispose]();
      },
    };
  }

  test.for([
    ['answered', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n', 1],
    ['that cannot be read', 'none\r\n\r\n', 0],
    ['that cannot be read, after one in flight', 'GET /held HTTP/1.1\r\nHost: a\r\n\r\nnone\r\n\r\n', 1],
    [
      'to switch to another protocol',
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
      0,
    ],
    ['for a tunnel', 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n', 0],
  ] as const)(
    'what follows the last answer, to a request %s, is no request, and its client can go',
    async ([, request, count]) => {
      await using relay = await served();
      const client = relay.connect();
      client.write(request);
      await once(client.resume(), 'end');
      expect(await relay.count()).toBe(1);
      client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(10_000), () => client.destroy());
      await expect.poll(relay.count).toBe(0);
      expect(relay.asked).toHaveLength(count);
      expect(relay.asked.filter(({ closed }) => !closed)).toEqual([]);
    },
  );

  test('a client that sent more than is read ahead, and closes after the last answer, is gone too', async () => {
    await using relay = await served();
    const client = relay.connect();
    const next = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
    client.write(`GET /held HTTP/1.1\r\nHost: a\r\n\r\n${next.repeat(1000)}`);
    await expect.poll(() => relay.asked.length).toBeGreaterThan(1000);
    relay.asked[0]?.writeHead(200, { connection: 'close' }).end('served\n');
    await once(client.resume(), 'end');
    client.write(next.repeat(10_000), () => client.destroy());
    await expect.poll(relay.count).toBe(0);
    expect(relay.asked.filter(({ closed }) => !closed)).toEqual([]);
  });
});
