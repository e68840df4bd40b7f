import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { bodyOf, type Piece } from '../../src/service/json-response.ts';
import { listen } from '../../src/service/listen.ts';

/** A long answer, and how far it was built. */
function longAnswer(pieces: number, pieceBytes: number) {
  const state = { taken: 0, ended: false };
  const bytes = Buffer.alloc(pieceBytes, ' ');
  function* all(): Generator<Piece> {
    try {
      yield '[';
      for (; state.taken < pieces; state.taken++) yield bytes;
      yield ']';
    } finally {
      state.ended = true;
    }
  }
  return { state, all };
}

/** A server that answers `/long` with the pieces, and everything else with a word. */
async function server(pieces: () => Iterable<Piece>) {
  const answer = async ({ url }: Request) =>
    new Response(url.endsWith('/long') ? await bodyOf(pieces(), () => setImmediate()) : 'here');
  const { url, close } = await listen(answer, {}, systemClock);
  return {
    async get(path: string): Promise<IncomingMessage> {
      const asked = request(url + path).end();
      const [response] = await once(asked, 'response');
      return response;
    },
    [Symbol.asyncDispose]: () => close(0),
  };
}

async function lengthOf(response: IncomingMessage): Promise<number> {
  let length = 0;
  for await (const chunk of response) length += chunk.length;
  return length;
}

test.each([0, 10, 2 * 1024 * 1024])('pieces of %i bytes arrive as one text', async (size) => {
  const large = 'é'.repeat(size / 2);
  const body = await bodyOf(['{"a":"', undefined, large, Buffer.from(large), '"}'], () => setImmediate());
  expect(await new Response(body).text()).toBe(`{"a":"${large}${large}"}`);
});

test('an answer is built no faster than its reader takes it, and others are answered meanwhile', async () => {
  const megabyte = 1024 * 1024;
  const { state, all } = longAnswer(200, megabyte);
  await using serving = await server(all);
  const response = await serving.get('/long');
  const other = async () => lengthOf(await serving.get('/other'));
  for (let time = 0; time < 20; time += 1) expect(await other()).toBe('here'.length);
  // What the operating system and both ends keep for a reader that reads nothing.
  expect(state.taken).toBeLessThan(40);
  expect(await lengthOf(response)).toBe(200 * megabyte + 2);
  expect(state).toEqual({ taken: 200, ended: true });
});

test('a reader that goes away ends the pieces at once, also while they wait for their turn', async () => {
  const { state, all } = longAnswer(10, 1024 * 1024);
  let isPaused = false;
  const body = await bodyOf(all(), async () => {
    if (state.taken < 3) return;
    isPaused = true;
    await new Promise(() => undefined);
  });
  if (!(body instanceof ReadableStream)) throw new Error('the answer is sent while it is built');
  const reader = body.getReader();
  const reading = (async () => {
    while (!(await reader.read()).done);
  })();
  await expect.poll(() => isPaused).toBe(true);
  void reader.cancel();
  expect(state.ended).toBe(true);
  await reading;
});

test('a reader that goes away ends the building of its answer', async () => {
  const { state, all } = longAnswer(1_000_000, 1024 * 1024);
  await using serving = await server(all);
  const response = await serving.get('/long');
  response.on('error', () => undefined);
  await once(response, 'readable');
  response.destroy();
  await expect.poll(() => state.ended).toBe(true);
  expect(state.taken).toBeLessThan(1000);
});
