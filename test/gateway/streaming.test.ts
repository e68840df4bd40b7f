import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { place, question } from './gateway-fixture.ts';
import { leave, responseOf, untilSeen } from './sandbox.ts';
import { chatAnswer, events, json } from './test-upstream.ts';

const asked = { ...question, stream: true };
const chunk = (content: string) =>
  `data: ${JSON.stringify({ model: 'big-1', choices: [{ index: 0, delta: { content } }] })}\n\n`;
const usage = `data: ${JSON.stringify({ model: 'big-1', choices: [], usage: { prompt_tokens: 7, completion_tokens: 2 } })}\n\n`;

/** An upstream that begins a stream, and the response to go on with. */
function begun(type = 'text/event-stream') {
  const { promise: response, resolve } = Promise.withResolvers<ServerResponse>();
  const step = (begin: ServerResponse) => {
    begin.writeHead(200, { 'content-type': type }).flushHeaders();
    resolve(begin);
  };
  return { response, step };
}

test('each event of a stream is passed on before the next one is made', async () => {
  const { response, step } = begun();
  await using at = await place({}, step);
  const request = at.sandbox.request({ headers: at.agent, body: asked });
  const upstream = await response;
  const stream = (await responseOf(request)).on('error', () => undefined);
  for (const word of ['one', 'two', 'three']) {
    const seen = untilSeen(stream, word);
    upstream.write(chunk(word));
    await seen;
  }
  const end = untilSeen(stream, '[DONE]');
  upstream.end(`${usage}data: [DONE]\n\n`);
  await end;
});

test('so is each event that is translated, under whatever type the server sends it', async () => {
  for (const type of ['text/event-stream', 'text/plain; charset=utf-8', 'application/octet-stream']) {
    const { response, step } = begun(type);
    await using at = await place({}, step);
    const body = { ...asked, max_tokens: 100 };
    const request = at.sandbox.request({ path: '/v1/messages', headers: at.agent, body });
    const upstream = await response;
    const answer = responseOf(request);
    // The head of an answer of another type comes with its first event.
    upstream.write(chunk('zero'));
    const stream = (await answer).on('error', () => undefined);
    for (const word of ['one', 'two', 'three']) {
      const seen = untilSeen(stream, word);
      upstream.write(chunk(word));
      await seen;
    }
    const end = untilSeen(stream, 'message_stop');
    upstream.end(
      `${usage}data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`,
    );
    await end;
  }
});

test('a translated client is told why a stream breaks off, and sees that it does', async () => {
  const { response, step } = begun();
  await using at = await place({}, step);
  const body = { ...asked, max_tokens: 100 };
  const request = at.sandbox.request({ path: '/v1/messages', headers: at.agent, body });
  const upstream = await response;
  upstream.end(`${chunk('one')}data: out of memory\n\n`);
  const stream = await responseOf(request);
  let text = '';
  const broken = (async () => {
    for await (const piece of stream) text += piece;
  })();
  await expect(broken).rejects.toThrow();
  expect(text).toContain('event: error');
  expect(text).toContain('out of memory');
});

test('a client that goes away ends the request at the model, and is no failure of it', async () => {
  const { response, step } = begun();
  await using at = await place({}, step);
  const request = at.sandbox.request({ headers: at.agent, body: asked });
  const upstream = await response;
  const stream = (await responseOf(request)).on('error', () => undefined);
  const closed = new Promise((resolve) => upstream.once('close', resolve));
  const seen = untilSeen(stream, 'one');
  upstream.write(chunk('one'));
  await seen;
  leave(request);
  await closed;
  const account = await at.session.account();
  expect(account.failure).toBeUndefined();
  expect(account.exchanges).toMatchObject([
    { status: 200, failure: 'its client ended it', usage: {}, streamed: true },
  ]);
  expect(account.usage).toMatchObject([{ requests: 1, usage: {} }]);
});

test('a client that goes away once the answer says that it is complete has had a whole answer', async () => {
  const { response, step } = begun();
  await using at = await place({}, step);
  const request = at.sandbox.request({ headers: at.agent, body: asked });
  const upstream = await response;
  const stream = (await responseOf(request)).on('error', () => undefined);
  const closed = new Promise((resolve) => upstream.once('close', resolve));
  const end = untilSeen(stream, '[DONE]');
  upstream.write(`${chunk('one')}${usage}data: [DONE]\n\n`);
  await end;
  leave(request);
  await closed;
  const { exchanges } = await at.session.account();
  expect(exchanges).toMatchObject([{ failure: undefined, usage: { inputTokens: 7, outputTokens: 2 } }]);
});

test('an answer that has said its end is whole, however its connection ends', async () => {
  const { response, step } = begun();
  await using at = await place({}, step);
  const body = { ...asked, max_tokens: 100 };
  const request = at.sandbox.request({ path: '/v1/messages', headers: at.agent, body });
  const upstream = await response;
  const stream = await responseOf(request);
  const end = untilSeen(stream, 'message_stop');
  upstream.write(
    `${chunk('one')}data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`,
  );
  await end;
  const ended = new Promise((resolve, reject) => stream.once('end', resolve).once('error', reject));
  stream.resume();
  upstream.destroy();
  await ended;
  expect((await at.session.account()).exchanges).toMatchObject([{ failure: undefined }]);
});

test('a client that goes away before the answer ends the request too', async () => {
  const { promise: arrived, resolve } = Promise.withResolvers<ServerResponse>();
  await using at = await place({}, (response) => resolve(response));
  const request = at.sandbox.request({ headers: at.agent, body: asked });
  const upstream = await arrived;
  const closed = new Promise((over) => upstream.once('close', over));
  leave(request);
  await closed;
  expect((await at.session.account()).exchanges).toMatchObject([
    { status: undefined, failure: 'its client ended it', failedTries: [] },
  ]);
});

test('a stream that the upstream cuts is broken off, and its usage is unknown', async () => {
  const { response, step } = begun();
  await using at = await place({}, step, json(200, chatAnswer));
  const request = at.sandbox.request({ headers: at.agent, body: asked });
  const upstream = await response;
  const stream = (await responseOf(request)).on('error', () => undefined);
  const seen = untilSeen(stream, 'one');
  upstream.write(chunk('one'));
  await seen;
  const closed = new Promise((over) => stream.once('close', over));
  upstream.destroy();
  await closed;
  expect(stream.complete).toBe(false);
  const account = await at.session.account();
  expect(account).toMatchObject({ usage: [{ requests: 1, usage: {}, answeredBy: 'big-1' }] });
  expect(account.failure).toContain('connection');
  await at.sandbox.ask({ headers: at.agent, body: question });
  const later = await at.session.account();
  expect(later.failure).toBeUndefined();
  expect(later.usage).toMatchObject([{ requests: 2, usage: {} }]);
});

test('a stream that ends half-way through is passed on as it is, and said to be incomplete', async () => {
  const half = chunk('one') + usage.slice(0, 30);
  await using at = await place({}, events(half));
  const answer = await at.sandbox.ask({ headers: at.agent, body: asked });
  expect(answer.bytes.toString()).toBe(half);
  expect((await at.session.account()).failure).toBe('big: the answer ended before it was complete');
});

test.for([
  ['bytes that are no events', 'data: {]\n\nnothing: \u0000\ufffd\n\n::::\n\n'],
  ['an error in the stream', 'data: {"error":{"message":"overloaded"}}\n\n'],
  [
    'numbers that are none',
    'data: {"usage":{"prompt_tokens":-5,"completion_tokens":"many"}}\n\ndata: [DONE]\n\n',
  ],
] as const)('%s pass unchanged, and no usage is made of them', async ([, body]) => {
  await using at = await place({}, events(body));
  const answer = await at.sandbox.ask({ headers: at.agent, body: asked });
  expect(answer.bytes.toString()).toBe(body);
  const { usage: measured } = await at.session.account();
  expect(measured).toMatchObject([{ usage: {} }]);
});

test('a stream without end passes without filling the memory, until its client has enough', async () => {
  const big = chunk('x'.repeat(60_000));
  let written = 0;
  let stalled = false;
  await using at = await place({}, (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const write = () => {
      while (!response.destroyed) {
        written += big.length;
        if (!response.write(big)) {
          stalled = true;
          response.once('drain', write);
          return;
        }
      }
    };
    write();
  });
  const request = at.sandbox.request({ headers: at.agent, body: asked });
  const stream = (await responseOf(request)).on('error', () => undefined);
  const seen = untilSeen(stream, 'xx');
  await seen;
  stream.pause();
  expect(stalled).toBe(true);
  leave(request);
  const [exchange] = (await at.session.account()).exchanges;
  expect(exchange?.responseBytes).toBeLessThanOrEqual(written);
  expect(exchange?.failure).toBe('its client ended it');
});

test('ten thousand tiny pieces arrive in order, whole', async () => {
  const words = Array.from({ length: 10_000 }, (_, index) => `data: {"n":${index}}\n\n`);
  const whole = `${words.join('')}${usage}data: [DONE]\n\n`;
  await using at = await place({}, (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    let next = 0;
    const write = () => {
      while (next < words.length) {
        next += 1;
        if (!response.write(words[next - 1])) {
          response.once('drain', write);
          return;
        }
      }
      response.end(`${usage}data: [DONE]\n\n`);
    };
    write();
  });
  const answer = await at.sandbox.ask({ headers: at.agent, body: asked });
  expect(answer.bytes.equals(Buffer.from(whole))).toBe(true);
  expect((await at.session.account()).usage).toMatchObject([
    { usage: { inputTokens: 7, outputTokens: 2, totalTokens: 9 } },
  ]);
});

test('the time of models is that with a request in flight, counted once', async () => {
  const { response: first, step: one } = begun();
  const { response: second, step: two } = begun();
  await using at = await place({}, one, two);
  const answers = [at.sandbox.ask({ headers: at.agent, body: asked })];
  const a = await first;
  at.clock.advance(100);
  answers.push(at.sandbox.ask({ headers: at.agent, body: asked }));
  const b = await second;
  at.clock.advance(100);
  a.end(`${usage}data: [DONE]\n\n`);
  await answers[0];
  at.clock.advance(100);
  b.end(`${usage}data: [DONE]\n\n`);
  await answers[1];
  at.clock.advance(1000);
  expect(await at.session.account()).toMatchObject({ modelMs: 300, usage: [{ usage: { inputTokens: 14 } }] });
});
