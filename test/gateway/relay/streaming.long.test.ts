import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { hangMs, type RelayedSandbox, relayedSandbox } from './relayed-sandbox.ts';

vi.setConfig({ testTimeout: hangMs });

let relayed: RelayedSandbox;
beforeAll(async () => {
  relayed = await relayedSandbox();
});
afterAll(() => relayed[Symbol.asyncDispose]());

/** What was printed so far, to be waited for. */
function printed() {
  let all = '';
  let look: () => void = () => undefined;
  return {
    onOutput(text: string) {
      all += text;
      look();
    },
    async shows(text: string) {
      while (!all.includes(text)) {
        await new Promise<void>((resolve) => {
          look = resolve;
        });
      }
    },
  };
}

test('each piece of a stream reaches the client before the next one is sent', async () => {
  const request = relayed.nextRequest();
  const output = printed();
  const ended = relayed.module(
    `
    const answer = await fetch(process.env.ORIGIN);
    process.stdout.write(answer.headers.get('content-type'));
    for await (const chunk of answer.body) process.stdout.write(chunk);
  `,
    output.onOutput,
  );
  const { response } = await request;
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  await output.shows('text/event-stream');
  for (const piece of ['first', 'second', 'third']) {
    response.write(`data: ${piece}\n\n`);
    await output.shows(`data: ${piece}\n\n`);
  }
  response.end();
  expect(await ended).toMatch(/third\n\n$/);
});

test('each piece of an upload reaches the gateway before the client sends the next one', async () => {
  const request = relayed.nextRequest();
  const ended = relayed.module(`
    const upload = new TransformStream();
    const writer = upload.writable.getWriter();
    const answer = fetch(process.env.ORIGIN, { method: 'POST', body: upload.readable.pipeThrough(new TextEncoderStream()), duplex: 'half' });
    await writer.write('first');
    const echo = (await answer).body.pipeThrough(new TextDecoderStream()).getReader();
    for (const piece of ['second', 'third']) {
      console.log((await echo.read()).value);
      await writer.write(piece);
    }
    console.log((await echo.read()).value);
    process.exit();
  `);
  const { request: upload, response } = await request;
  upload.pipe(response);
  expect(await ended).toBe('first\nsecond\nthird\n');
});

test('an upload that the gateway does not read stops, and goes on when it does', async () => {
  const request = relayed.nextRequest();
  const output = printed();
  const total = 64 * 2 ** 20;
  const ended = relayed.module(
    `
    import { connect } from 'node:net';
    import { text } from 'node:stream/consumers';
    const socket = connect(Number(process.env.PORT), '127.0.0.1');
    const head = 'POST / HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\nContent-Length: ${total}\\r\\n\\r\\n';
    socket.write(head);
    const piece = Buffer.alloc(65536);
    let taken = 0;
    const send = () => {
      while (taken < ${total} && socket.write(piece)) taken += piece.length;
    };
    let before = -1;
    // Stalled: no byte went out between two looks.
    const look = setInterval(() => {
      if (socket.bytesWritten - socket.writableLength === before) {
        console.log('stalled at', before < ${total} / 2 ? 'little' : before);
        clearInterval(look);
      }
      before = socket.bytesWritten - socket.writableLength;
    }, 500);
    socket.on('drain', () => {
      taken += piece.length;
      send();
    });
    send();
    console.log((await text(socket)).split('\\r\\n').at(-1));
  `,
    output.onOutput,
  );
  const { request: upload, response } = await request;
  await output.shows('stalled at');
  let received = 0;
  upload.on('data', (chunk: Buffer) => {
    received += chunk.length;
  });
  await once(upload, 'end');
  response.writeHead(200, { 'content-length': 4 }).end('done');
  expect(await ended).toBe('stalled at little\ndone\n');
  expect(received).toBe(total);
});

test('an answer that the client does not read stops the gateway', async () => {
  const first = Promise.withResolvers<ServerResponse>();
  const second = Promise.withResolvers<ServerResponse>();
  relayed.answer(({ url }, response) => (url === '/' ? first : second).resolve(response));
  const ended = relayed.module(`
    import { connect } from 'node:net';
    import { createInterface } from 'node:readline';
    const socket = connect(Number(process.env.PORT), '127.0.0.1');
    socket.pause();
    socket.write('GET / HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n');
    await fetch(process.env.ORIGIN + '/stalled');
    let bytes = 0;
    for await (const chunk of socket) bytes += chunk.length;
    console.log(bytes > 64e6);
  `);
  const response = await first.promise;
  const piece = Buffer.alloc(2 ** 16);
  let left = 1000;
  const write = () => {
    while (left > 0) {
      left -= 1;
      if (!response.write(piece)) return;
    }
    response.end();
  };
  response.on('drain', write);
  write();
  // The client reads nothing before its second request is answered, which is when the first can go no
  // further.
  const signal = await second.promise;
  await settled(() => left);
  expect(left).toBeGreaterThan(500);
  signal.end();
  expect(await ended).toBe('true\n');
});

/** Resolves when a number has stayed what it is for some rounds of the event loop and of the clock. */
async function settled(read: () => number): Promise<void> {
  for (let same = 0, before = read(); same < 20; same += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    if (read() !== before) same = 0;
    before = read();
  }
}

test('a thousand clients that stall in mid-request or mid-answer do not kill the relay', async () => {
  const before = await relayed.sidecars();
  let moved = 0;
  const unread: IncomingMessage[] = [];
  const piece = Buffer.alloc(2 ** 16);
  relayed.answer((request, response) => {
    moved += 1;
    if (request.method === 'POST') {
      unread.push(request);
      return;
    }
    const write = () => {
      do moved += 1;
      while (response.write(piece));
    };
    response.on('drain', write);
    write();
  });
  const leave = new AbortController();
  const output = printed();
  const ended = relayed.module(
    `
    import { connect } from 'node:net';
    const piece = Buffer.alloc(1_000_000);
    for (let count = 0; count < 1000; count++) {
      const socket = connect(Number(process.env.PORT), '127.0.0.1').pause();
      // Those above the relay's limit are not taken.
      socket.on('error', () => socket.destroy());
      const method = count % 2 === 0 ? 'GET' : 'POST';
      socket.write(method + ' / HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: ' + (method === 'GET' ? 0 : 1e9) + '\\r\\n\\r\\n');
      if (method === 'POST') socket.write(piece);
    }
    console.log('sent');
    setInterval(() => undefined, 1000);
  `,
    output.onOutput,
    leave.signal,
  );
  await output.shows('sent');
  await settled(() => moved);
  leave.abort();
  await ended;
  relayed.answer((_request, response) => response.end('alive'));
  // Only who goes on reading an upload learns that its client has left.
  for (const upload of unread) upload.on('error', () => undefined).resume();
  expect(
    await relayed.shell(
      'curl -s --retry 1000 --retry-delay 1 --retry-all-errors --retry-max-time 150 $ORIGIN/',
    ),
  ).toBe('alive');
  expect(await relayed.sidecars()).toEqual(before);
});

test('a client that goes away ends its request, and no other', async () => {
  const request = relayed.nextRequest();
  const leave = new AbortController();
  const ended = relayed.shell('curl -s $ORIGIN/', undefined, leave.signal);
  const { response } = await request;
  response.write('some');
  const closed = once(response, 'close');
  leave.abort();
  await closed;
  await ended;
  expect(response.writableFinished).toBe(false);
  const next = relayed.nextRequest();
  const other = relayed.shell('curl -s $ORIGIN/');
  const { response: alive } = await next;
  alive.end('alive');
  expect(await other).toBe('alive');
});

test('an answer that breaks off looks broken to the client, begun or not, with a length or without', async () => {
  relayed.answer(({ url }, response) => {
    const cut = () => response.destroy(new Error('the upstream is gone'));
    if (url === '/before') return cut();
    if (url === '/length') response.setHeader('content-length', 9);
    response.write('half', cut);
  });
  const statuses = await relayed.shell(
    'for path in before chunked length; do timeout 30 curl -s $ORIGIN/$path > /dev/null; echo $path $?; done',
  );
  // curl's words for a reply or transfer that ended early, or a connection that was reset.
  expect(statuses).toMatch(/^before (52|56)\nchunked (18|52|56)\nlength (18|52|56)\n$/);
});
