import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:http2';
import { Duplex, duplexPair } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { serveRelay } from '../../../src/gateway/relay/serve.ts';

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

test.for(['with-length', 'without'])(
  'heads and bodies written together arrive as they are, %s',
  async (how) => {
    const script = new URL('asking-many.ts', import.meta.url).pathname;
    const { stdout } = await execa(process.execPath, [script, how]);
    expect(stdout).toBe('2500');
  },
);
