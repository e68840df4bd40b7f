import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
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
  const seen: { headers: IncomingHttpHeaders; body: string }[] = [];
  relayed.answer(async (stream, headers) => {
    seen.push({ headers, body: await text(stream) });
    stream.respond({ ':status': 200 });
    stream.end('noted');
  });
  return seen;
}

function refusing(status: number, body: string) {
  return (stream: ServerHttp2Stream) => {
    stream.respond({ ':status': status });
    stream.end(body);
  };
}

test('a request of the sandbox arrives as it was sent', async () => {
  const seen = noting();
  const printed = await relayed.shell(
    `curl -s "$ORIGIN/v1/messages?beta=true&x=%2F" -H 'Authorization: Bearer token' -H 'X-Other: café' -d '{"a": "ü"}'`,
  );
  expect(printed).toBe('noted');
  expect(seen).toHaveLength(1);
  expect(seen[0]?.body).toBe('{"a": "ü"}');
  expect(seen[0]?.headers).toMatchObject({
    ':method': 'POST',
    ':authority': 'model',
    ':path': '/v1/messages?beta=true&x=%2F',
    authorization: 'Bearer token',
    'content-length': '11',
    'x-other': Buffer.from('café').toString('latin1'),
  });
});

test('an answer arrives as it was sent', async () => {
  relayed.answer((stream) => {
    stream.respond({
      ':status': 418,
      'x-request-id': 'r1',
      'set-cookie': ['a=1', 'b=2'],
      'content-length': 5,
    });
    stream.end('short');
  });
  const printed = await relayed.shell('curl -si $ORIGIN/');
  expect(printed).toMatch(/^HTTP\/1.1 418 /);
  expect(printed).toContain('x-request-id: r1\r\n');
  expect(printed).toContain('set-cookie: a=1\r\nset-cookie: b=2\r\n');
  expect(printed).toMatch(/content-length: 5\r\n[\s\S]*\r\n\r\nshort$/);
});

test('what belongs to one connection is not passed on, and the mark of the proxy cannot be forged', async () => {
  const seen = noting();
  await relayed.shell(
    "curl -s $ORIGIN/ -H 'Connection: keep-alive, X-Hop' -H 'X-Hop: 1' -H 'TE: gzip' -H 'Proxy-Connection: close' -H 'X-Offsite-Proxy: 1' -H 'Host: elsewhere.test'",
  );
  const names = Object.keys(seen[0]?.headers ?? {});
  expect(names.filter((name) => /hop|te$|connection|proxy|host/.test(name))).toEqual([]);
  expect(seen[0]?.headers[':authority']).toBe('model');
});

test('a request to the proxy names its host; one to the relay itself is for the model, however it is spelled', async () => {
  const seen = noting();
  await relayed.shell(
    'for url in http://host.test:81/a?b http://HOST.test "$ORIGIN/v1/models" http://localhost:$PORT/v1/models; do curl -s -x $ORIGIN "$url"; done',
  );
  const told = seen.map(({ headers }) => [
    headers[':authority'],
    headers[':path'],
    headers['x-offsite-proxy'],
  ]);
  expect(told).toEqual([
    ['host.test:81', '/a?b', '1'],
    ['HOST.test', '/', '1'],
    ['model', '/v1/models', undefined],
    ['model', '/v1/models', undefined],
  ]);
});

test('HEAD, an answer without a body, and a wait for 100 Continue end when they should', async () => {
  relayed.answer((stream, headers) => {
    const status = headers[':path'] === '/empty' ? 204 : 200;
    stream.respond({ ':status': status, 'x-expect': String(headers.expect) });
    stream.end(headers[':method'] === 'HEAD' || status === 204 ? '' : 'body');
  });
  expect(await relayed.shell('curl -sI $ORIGIN/')).toContain('HTTP/1.1 200');
  expect(await relayed.shell('curl -si $ORIGIN/empty')).toContain('HTTP/1.1 204');
  const expected = await relayed.shell("curl -si $ORIGIN/ -H 'Expect: 100-continue' -d body");
  expect(expected).toMatch(
    /^HTTP\/1.1 100 Continue[\s\S]*HTTP\/1.1 200 OK[\s\S]*x-expect: undefined[\s\S]*body$/,
  );
});

test('a body of 100 MB arrives whole, up and down, with a length and without', async () => {
  relayed.answer(async (stream) => {
    const body = await buffer(stream);
    stream.respond({ ':status': 200, 'x-sha256': createHash('sha256').update(body).digest('hex') });
    stream.end(body);
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
  const early = refusing(413, 'too big');
  relayed.answer((stream, headers) => {
    if (headers[':method'] !== 'POST') return refusing(200, 'fine')(stream);
    // Has begun to read, as a gateway does that counts.
    stream.once('data', () => {
      stream.pause();
      early(stream);
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

test('requests that two readers would cut differently, or with ten thousand headers, reach nobody', async () => {
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
  const target = 'GET ftp://host.test/ HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n';
  expect(await send(`'${target}'`)).toBe('HTTP/1.1 400 Bad Request\n');
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
  const waiting: ServerHttp2Stream[] = [];
  relayed.answer((stream) => {
    waiting.push(stream);
    most = Math.max(most, waiting.length);
    // Held until there are so many, so that they are under way at the same time.
    if (waiting.length === 150) for (const held of waiting.splice(0)) refusing(200, 'x')(held);
  });
  const printed = await relayed.module(`
    const ask = async () => (await (await fetch(process.env.ORIGIN)).text()).length;
    const lengths = await Promise.all(Array.from({ length: 450 }, ask));
    console.log(lengths.reduce((sum, length) => sum + length, 0));
  `);
  expect(printed).toBe('450\n');
  expect(most).toBe(150);
});
