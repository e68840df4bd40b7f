import { expect, test } from 'vitest';
import type { Clock } from '../../../src/base/clock.ts';
import { document, events, scripted, send, text, wires } from './asking.ts';

const question = (about = 'x') => ({ messages: [{ role: 'user', content: about }] });

test.each(wires)('an error of the script comes in the own shape of %s, with Retry-After', async (wire) => {
  const upstream = scripted({
    turns: [{ trouble: { error: { status: 429, message: 'slow down', retryAfter: 3 } } }],
  });
  const { status, headers, document: answer } = await document(upstream, wire, { input: 'x', ...question() });
  expect({ status, retryAfter: headers['retry-after'] }).toEqual({ status: 429, retryAfter: '3' });
  expect(answer.error.message).toBe('slow down');
});

test('a trouble with `times` passes, for each conversation by itself', async () => {
  const upstream = scripted({ turns: [{ text: 'fine', trouble: { error: { status: 503 }, times: 2 } }] });
  const ask = async (about: string) => (await document(upstream, 'openai-chat', question(about))).status;
  expect([
    await ask('a'),
    await ask('a'),
    await ask('b'),
    await ask('a'),
    await ask('b'),
    await ask('b'),
  ]).toEqual([503, 503, 503, 200, 503, 200]);
});

test('a cut breaks the connection after so many events or bytes', async () => {
  for (const cut of [{ afterEvents: 3 }, { afterBytes: 100 }, { afterEvents: 0 }]) {
    const upstream = scripted({
      turns: [{ text: 'a text of some length', stream: { characters: 4 }, trouble: { cut } }],
    });
    const answer = await send(upstream, 'openai-chat', { ...question(), stream: true });
    let got = '';
    const reading = (async () => {
      for await (const chunk of answer.body) got += Buffer.from(chunk).toString();
    })();
    await expect(reading).rejects.toMatchObject({ code: 'SCRIPTED_CUT' });
    if (cut.afterEvents !== undefined) expect(got.split('data:').length - 1).toBe(cut.afterEvents);
    else expect(got).toHaveLength(100);
  }
});

test('a clean cut ends as if that were all', async () => {
  const upstream = scripted({
    turns: [{ text: 'a text', trouble: { cut: { afterEvents: 2, cleanly: true } } }],
  });
  expect(await events(upstream, 'openai-chat', question())).toHaveLength(2);
});

test('garbage is neither JSON nor events', async () => {
  const upstream = scripted({ turns: [{ trouble: { garbage: true } }] });
  const answer = await send(upstream, 'openai-chat', question());
  expect(answer.status).toBe(200);
  const body = await text(answer.body);
  expect(() => JSON.parse(body)).toThrow(SyntaxError);
});

test('a hanging model answers nothing until the request is given up', async () => {
  const gone = new AbortController();
  const asked = send(scripted({ turns: [{ trouble: { hang: true } }] }), 'openai-chat', question(), {
    signal: gone.signal,
  });
  gone.abort(new Error('given up'));
  await expect(asked).rejects.toThrow('given up');
});

test.each(wires)(
  'a stream without end in %s goes on until it is given up, and is read at the reader’s pace',
  async (wire) => {
    const gone = new AbortController();
    const upstream = scripted({ turns: [{ text: 'on and on', trouble: { neverEnding: true } }] });
    const body = { input: 'x', ...question(), stream: true };
    const answer = await send(upstream, wire, body, { signal: gone.signal });
    let events = 0;
    const reading = (async () => {
      for await (const chunk of answer.body) {
        events += Buffer.from(chunk).toString().includes('on and on') ? 1 : 0;
        if (events === 500) gone.abort(new Error('enough'));
      }
    })();
    await expect(reading).rejects.toThrow('enough');
  },
);

test('delay and pauses are the clock’s', async () => {
  const slept: number[] = [];
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    sleep: async (ms) => {
      slept.push(ms);
    },
  };
  const upstream = scripted(
    { turns: [{ text: 'abcd', delay: '2s', stream: { characters: 2, pause: '30ms' } }] },
    clock,
  );
  const all = await events(upstream, 'openai-chat', question());
  expect(slept).toEqual([2000, ...all.map(() => 30)]);
});

test('an abort ends a stream between two events', async () => {
  const gone = new AbortController();
  const upstream = scripted({ turns: [{ text: 'some text', stream: { characters: 1 } }] });
  const answer = await send(
    upstream,
    'openai-chat',
    { ...question(), stream: true },
    { signal: gone.signal },
  );
  const reading = (async () => {
    for await (const _ of answer.body) gone.abort(new Error('stop'));
  })();
  await expect(reading).rejects.toThrow('stop');
});

test('every mistake in a script is said at its place', () => {
  const read = () =>
    scripted(
      [
        'turns:',
        '  - txet: hi',
        '    delay: 3',
        '  - when: { user: { matches: "(" } }',
        '    trouble: { cut: 1 }',
      ].join('\n'),
    );
  expect(read).toThrow(/script\.yaml:2:5: turns\[0\]\.txet: unknown key/);
  expect(read).toThrow(/script\.yaml:3:5: turns\[0\]\.delay: expected a duration/);
  expect(read).toThrow(/script\.yaml:4:.*regular expression/);
  expect(read).toThrow(/script\.yaml:5:/);
});
