import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer, text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { hangMs, type RelayedSandbox, relayedSandbox } from './relayed-sandbox.ts';

vi.setConfig({ testTimeout: hangMs });

let relayed: RelayedSandbox;
beforeAll(async () => {
  relayed = await relayedSandbox();
});
afterAll(() => relayed[Symbol.asyncDispose]());

/** Answers every request with 200 and notes what it was. */
function noting() {
  const seen: (Pick<IncomingMessage, 'method' | 'url' | 'headers'> & { body: string })[] = [];
  relayed.answer(async (request, response) => {
    const { method, url, headers } = request;
    seen.push({ method, url, headers, body: await text(request) });
    response.end('noted');
  });
  return seen;
}

test('a request of the sandbox arrives as it was sent', async () => {
  const seen = noting();
  const printed = await relayed.shell(
    `curl -s "$ORIGIN/v1/messages?beta=true&x=%2F" -H 'Authorization: Bearer token' -H 'X-Other: café' -d '{"a": "ü"}'`,
  );
  expect(printed).toBe('noted');
  expect(seen).toHaveLength(1);
  expect(seen[0]).toMatchObject({
    method: 'POST',
    url: '/v1/messages?beta=true&x=%2F',
    body: '{"a": "ü"}',
  });
  expect(seen[0]?.headers).toMatchObject({
    authorization: 'Bearer token',
    'content-length': '11',
    'x-other': Buffer.from('café').toString('latin1'),
  });
});

test('an answer arrives as it was sent', async () => {
  relayed.answer((_request, response) => {
    const headers = { 'x-request-id': 'r1', 'set-cookie': ['a=1', 'b=2'], 'content-length': 5 };
    response.writeHead(418, headers).end('short');
  });
  const printed = await relayed.shell('curl -si $ORIGIN/');
  expect(printed).toMatch(/^HTTP\/1.1 418 /);
  expect(printed).toContain('x-request-id: r1\r\n');
  expect(printed).toContain('set-cookie: a=1\r\nset-cookie: b=2\r\n');
  expect(printed).toMatch(/content-length: 5\r\n[\s\S]*\r\n\r\nshort$/);
});

test("a proxy's client's request arrives with the whole address that it asks for", async () => {
  const seen = noting();
  await relayed.shell('curl -s -x $ORIGIN "http://host.test:81/a?b"');
  expect(seen).toMatchObject([{ url: 'http://host.test:81/a?b', headers: { host: 'host.test:81' } }]);
});

test('HEAD, an answer without a body, and a wait for 100 Continue end when they should', async () => {
  relayed.answer(({ method, url }, response) => {
    const status = url === '/empty' ? 204 : 200;
    response.writeHead(status).end(method === 'HEAD' || status === 204 ? '' : 'body');
  });
  expect(await relayed.shell('curl -sI $ORIGIN/')).toContain('HTTP/1.1 200');
  expect(await relayed.shell('curl -si $ORIGIN/empty')).toContain('HTTP/1.1 204');
  const expected = await relayed.shell("curl -si $ORIGIN/ -H 'Expect: 100-continue' -d body");
  expect(expected).toMatch(/^HTTP\/1.1 100 Continue[\s\S]*HTTP\/1.1 200 OK[\s\S]*body$/);
});

test('a body of 100 MB arrives whole, up and down, with a length and without', async () => {
  relayed.answer(async (request, response) => {
    const body = await buffer(request);
    response.setHeader('x-sha256', createHash('sha256').update(body).digest('hex'));
    response.end(body);
  });
  const printed = await relayed.shell(
    `head -c 100000000 /dev/urandom > /tmp/body
    curl -s -D /tmp/head1 -T /tmp/body $ORIGIN/ -o /tmp/answer1
    curl -s -D /tmp/head2 -T - $ORIGIN/ -o /tmp/answer2 < /tmp/body
    cmp /tmp/body /tmp/answer1 && cmp /tmp/body /tmp/answer2 && grep -h x-sha256 /tmp/head1 /tmp/head2 | grep -c $(sha256sum < /tmp/body | cut -d ' ' -f 1)`,
  );
  expect(printed).toBe('2\n');
});

test('an upload that is answered before its end is answered, and the connection can be used again', async () => {
  relayed.answer((request, response) => {
    if (request.method !== 'POST') return response.end('fine');
    // Has begun to read, as a gateway does that counts.
    request.once('data', () => {
      response.writeHead(413).end('too big');
      request.resume();
    });
  });
  const printed = await relayed.module(`
    const upload = new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(65536)) });
    const answer = await fetch(process.env.ORIGIN, { method: 'POST', body: upload, duplex: 'half' });
    console.log(answer.status, await answer.text());
    console.log(await (await fetch(process.env.ORIGIN)).text());
    process.exit();
  `);
  expect(printed).toBe('413 too big\nfine\n');
});

test('a WebSocket is refused at once and clearly, and an offer of HTTP/2 is passed over', async () => {
  noting();
  const upgrade = "-H 'Connection: Upgrade' -H 'Upgrade: WebSocket' -H 'Sec-WebSocket-Version: 13'";
  const refused = await relayed.shell(`curl -si $ORIGIN/v1/responses ${upgrade}`);
  expect(refused).toMatch(/^HTTP\/1.1 426 Upgrade Required\r\n[\s\S]*WebSockets are not carried/);
  expect(await relayed.shell('curl -s --http2 $ORIGIN/')).toBe('noted');
});

test('ambiguous requests and requests with ten thousand headers reach nobody', async () => {
  const seen = noting();
  const send = (request: string) =>
    relayed.module(`
      import { connect } from 'node:net';
      import { text } from 'node:stream/consumers';
      const socket = connect(Number(process.env.PORT), '127.0.0.1');
      socket.write(${request});
      console.log((await text(socket)).split('\\r\\n')[0]);
    `);
  const head = 'POST / HTTP/1.1\\r\\nHost: a\\r\\n';
  const rest = '0\\r\\n\\r\\nGET /admin HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n';
  const both = `${head}Content-Length: 4\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n${rest}`;
  expect(await send(`'${both}'`)).toBe('HTTP/1.1 400 Bad Request\n');
  const twoLengths = `${head}Content-Length: 4\\r\\nContent-Length: 5\\r\\n\\r\\n${rest}`;
  expect(await send(`'${twoLengths}'`)).toBe('HTTP/1.1 400 Bad Request\n');
  const tooMany = 'HTTP/1.1 431 Request Header Fields Too Large\n';
  expect(await send(`'${head}' + 'a: b\\r\\n'.repeat(10_000) + '\\r\\n'`)).toBe(tooMany);
  expect(await send(`'${head}' + 'a: b\\r\\n'.repeat(300) + '\\r\\n'`)).toBe(tooMany);
  expect(seen).toEqual([]);
});

test('a million chunks of one byte arrive as one body', async () => {
  const seen = noting();
  const printed = await relayed.module(`
    import { connect } from 'node:net';
    import { text } from 'node:stream/consumers';
    const socket = connect(Number(process.env.PORT), '127.0.0.1');
    socket.write('POST / HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n');
    for (let sent = 0; sent < 1000; sent++) socket.write('1\\r\\nx\\r\\n'.repeat(1000));
    socket.write('0\\r\\n\\r\\n');
    console.log((await text(socket)).includes('noted'));
  `);
  expect(printed).toBe('true\n');
  expect(seen[0]?.body).toBe('x'.repeat(1_000_000));
});

test('hundreds of requests at a time are all answered', async () => {
  let most = 0;
  const waiting: ServerResponse[] = [];
  relayed.answer((_request, response) => {
    waiting.push(response);
    most = Math.max(most, waiting.length);
    // Held until there are so many, so that they are under way at the same time.
    if (waiting.length === 150) for (const held of waiting.splice(0)) held.end('x');
  });
  const printed = await relayed.module(`
    const ask = async () => (await (await fetch(process.env.ORIGIN)).text()).length;
    const lengths = await Promise.all(Array.from({ length: 450 }, ask));
    console.log(lengths.reduce((sum, length) => sum + length, 0));
  `);
  expect(printed).toBe('450\n');
  expect(most).toBe(150);
});
