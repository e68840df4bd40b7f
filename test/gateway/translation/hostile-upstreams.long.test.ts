import { expect, test } from 'vitest';
import type { NeutralEvent } from '../../../src/gateway/translation/neutral-answer.ts';
import { textOfEvent } from '../../../src/gateway/wires/lenient.ts';
import type { Wire } from '../../../src/suite/model-config.ts';
import { call, end, framesOf, heard, pairs, success, write } from './hostile-model.ts';

const good = [
  ...['I ', 'look ', 'around.'].map((text): NeutralEvent => ({ type: 'text', text })),
  ...call('c1', ['{"command":', '"ls"}']),
  ...call('c2', ['{"command":', '"pwd"}']),
  end,
];

const half = (frames: string[]) => frames.slice(0, Math.floor(frames.length / 2));
const rest = (frames: string[]) => frames.slice(Math.floor(frames.length / 2));

const broken: [string, (frames: string[]) => (string | Buffer)[]][] = [
  ['ends in the middle', half],
  [
    'has garbage in the middle',
    (frames) => [...half(frames), 'data: {"choices": [{"del\n\n', ...rest(frames)],
  ],
  ['comes in reverse order', (frames) => frames.toReversed()],
  ['lacks its first half', rest],
  ['is one piece of nothing', () => ['data: null\n\n']],
];

for (const [what, change] of broken) {
  // Each event of gemini stands for itself, and the last one of openai-responses has the whole answer.
  const detectable = pairs.filter(
    ({ model }) =>
      !['comes in reverse order', 'lacks its first half'].includes(what) ||
      !['gemini', 'openai-responses'].includes(model),
  );
  test.each(detectable)(
    `$model to $client: a stream that ${what} is never a success`,
    async ({ model, client }) => {
      const frames = framesOf(model, good);
      const got = await heard(client, model, async (response) => {
        await write(response, change(frames));
        response.end();
      });
      expect(got.text).not.toMatch(success[client]);
      expect(got.isWhole).toBe(false);
      expect(got.failure).toEqual(expect.any(String));
    },
  );
}

test.each(pairs)(
  '$model to $client: a connection that is cut breaks the answer',
  async ({ model, client }) => {
    const got = await heard(client, model, async (response) => {
      await write(response, half(framesOf(model, good)));
      setTimeout(() => response.destroy(), 50);
    });
    expect(got.text).not.toMatch(success[client]);
    expect(got.isWhole).toBe(false);
  },
);

test.each(pairs)('$model to $client: calls with the same id become two calls', async ({ model, client }) => {
  const steps = [...call('same', ['{"command":"ls"}']), ...call('same', ['{"command":"pwd"}']), end];
  const got = await heard(client, model, async (response) => {
    await write(response, framesOf(model, steps));
    response.end();
  });
  expect(got).toMatchObject({ isWhole: true, failure: undefined });
  expect(got.text).toMatch(success[client]);
  expect(got.text).toContain('"same"');
  expect(got.text).toContain('"call_0"');
});

test.each(pairs)(
  '$model to $client: 100,000 calls end the answer',
  { timeout: 60_000 },
  async ({ model, client }) => {
    const got = await heard(client, model, async (response) => {
      const all = Array.from({ length: 100_000 }, (_, index) => call(`c${index}`, ['{}'])).flat();
      await write(response, model === 'openai-responses' ? manyItems() : framesOf(model, [...all, end]));
      response.end();
    });
    expect(got.text).not.toMatch(success[client]);
    expect(got.isWhole).toBe(false);
    expect(got.failure).toContain('tool calls');
  },
);

/** Our own writer refuses to keep as many. */
function* manyItems(): Generator<string> {
  const event = (type: string, data: object) => textOfEvent({ event: type, data: { type, ...data } });
  yield event('response.created', { response: { id: 'r', status: 'in_progress' } });
  for (let output_index = 0; output_index < 100_000; output_index += 1) {
    const item = { type: 'function_call', call_id: `c${output_index}`, name: 'bash', arguments: '{}' };
    yield event('response.output_item.added', { output_index, item });
    yield event('response.output_item.done', { output_index, item });
  }
}

/** The pieces of a call with an argument of 50 MB. */
function* hugeCall(model: Wire): Generator<string> {
  const marker = '@piece@';
  const frames = framesOf(model, [...call('c1', ['{"command":"', marker, '"}']), end]);
  // Gemini's calls come in one event.
  const pieces = model === 'gemini' ? 1 : 500;
  const piece = 'x'.repeat(50_000_000 / pieces);
  for (const frame of frames) {
    const isDelta = frame.includes(marker) && !/\.done|\.completed/.test(frame);
    if (!isDelta) yield frame.replaceAll(marker, '');
    else for (let sent = 0; sent < pieces; sent += 1) yield frame.replace(marker, piece);
  }
}

test.each(pairs)(
  '$model to $client: an argument of 50 MB streams, or ends the answer where the wire needs it whole',
  { timeout: 60_000 },
  async ({ model, client }) => {
    const before = process.memoryUsage().rss;
    const got = await heard(client, model, async (response) => {
      await write(response, hugeCall(model));
      response.end();
    });
    if (model !== 'gemini' && client === 'openai-chat') {
      expect(got).toMatchObject({ isWhole: true, failure: undefined });
      expect(got.text.length).toBeGreaterThan(50_000_000);
    } else {
      expect(got.text).not.toMatch(success[client]);
      expect(got.isWhole).toBe(false);
      expect(got.failure).toMatch(/needs it whole|an event is longer/);
    }
    // The test itself keeps the whole answer.
    expect(process.memoryUsage().rss - before).toBeLessThan(800 * 2 ** 20);
  },
);
