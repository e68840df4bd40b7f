import type { ServerResponse } from 'node:http';
import { connect } from 'node:http2';
import { duplexPair } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import type { RelayHandler } from '../../../src/gateway/relay/relay.ts';
import { serveRelay } from '../../../src/gateway/relay/serve.ts';

/** An agent's and a sidecar's end, and how the latter opens a connection. */
function relayed(handler: Pick<RelayHandler, 'request'>) {
  const [inside, outside] = duplexPair();
  const server = serveRelay(outside, { ...handler, connect: (_request, client) => client.destroy() });
  const http2 = connect('http://gateway', { createConnection: () => inside });
  return {
    connection: () => http2.request({ ':method': 'CONNECT', ':authority': 'gateway' }, { endStream: false }),
    [Symbol.dispose]() {
      http2.destroy();
      server.destroy();
    },
  };
}

test('a client that sends thousands of requests ahead has so many under way, and the rest refused', async () => {
  const waiting: ServerResponse[] = [];
  using relay = relayed({ request: (_request, response) => waiting.push(response) });
  const client = relay.connection();
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(3000));
  await expect.poll(() => waiting.length).toBe(1024);
  const said = text(client);
  for (const response of waiting) response.end('served\n');
  const answers = (await said).match(/^HTTP\/1.1 \d+/gm) ?? [];
  expect(answers.filter((line) => line === 'HTTP/1.1 200')).toHaveLength(1024);
  expect(answers.filter((line) => line === 'HTTP/1.1 503')).toHaveLength(1);
});

test.for(['with a length', 'without'])(
  'heads and bodies written together arrive as they are, %s',
  async (how) => {
    const body = Buffer.alloc(200, 'x');
    const headers = how === 'without' ? {} : { 'content-length': body.length };
    using relay = relayed({
      async request(_request, response) {
        response.writeHead(200, headers).write(body);
        await Promise.resolve();
        response.end();
      },
    });
    const end = how === 'without' ? '0\r\n\r\n' : 'xxx';
    const request = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}';
    /** What is answered to one request after the other on a connection that is kept. */
    const converse = async () => {
      const client = relay.connection();
      const answers: string[] = [];
      let answer = '';
      client.write(request);
      for await (const chunk of client) {
        answer += chunk;
        if (!answer.endsWith(end)) continue;
        answers.push(answer);
        answer = '';
        if (answers.length === 50) break;
        client.write(request);
      }
      return answers;
    };
    const answers = (await Promise.all(Array.from({ length: 50 }, converse))).flat();
    expect(answers).toHaveLength(2500);
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1.1 200 OK\r\n[\w\s:,;=-]+x{200}[\s0]*$/);
  },
);
