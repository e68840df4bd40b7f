import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Losses } from '../../../src/gateway/translation/losses.ts';
import type { NeutralEvent } from '../../../src/gateway/translation/neutral-answer.ts';
import { eventReader } from '../../../src/gateway/translation/read-answers.ts';
import { callIds, StreamSteps } from '../../../src/gateway/translation/stream-steps.ts';
import { wireTable } from '../../../src/gateway/wires/wire-table.ts';
import { runs } from '../../short-tests.ts';

const reader = (take: Parameters<typeof eventReader>[2]) =>
  eventReader(new StreamSteps(callIds(), () => undefined), new Losses('lenient', 'm'), take);

/** What a reader saw of each event, at the time. */
function seen(events: readonly string[]): unknown[] {
  let last: unknown;
  const read = reader((event) => {
    last = structuredClone(event);
  });
  return events.map((data) => {
    try {
      read(data);
      return last;
    } catch {
      return 'not JSON';
    }
  });
}

function parsed(data: string): unknown {
  try {
    const event: unknown = JSON.parse(data);
    return typeof event === 'object' && event !== null && !Array.isArray(event) ? event : 'not JSON';
  } catch {
    return 'not JSON';
  }
}

const text = fc.oneof(
  fc.constantFrom('', ' the', 'a "b"', '\\', '\n', '\u0001', 'é😀', '\u2028', '","b":"', '__proto__'),
  fc.string({ unit: 'binary', maxLength: 8 }),
);

/** Makes an event of a text: as its clients do, and as a hostile model might. */
const frames: ((text: string) => string)[] = [
  (text) => JSON.stringify({ type: 'delta', index: 0, delta: { type: 'text', text } }),
  (text) => JSON.stringify({ choices: [{ index: 0, delta: { content: text } }], usage: null }),
  (text) => JSON.stringify({ text, again: text }),
  (text) => JSON.stringify({ [text]: 1 }),
  (text) => `{"text":"${text}"}`,
  (text) => `{"text":"${text}","text":"last"}`,
  (text) => `{"__proto__":"${text}"}`,
  (text) => `["${text}"]`,
  (text) => `{"a":{"b":["${text}"]}} `,
  (text) => text,
];

test('events are read as JSON.parse reads them, whatever the events before them were', () => {
  const event = fc.tuple(fc.constantFrom(...frames), text).map(([frame, text]) => frame(text));
  const alike = fc
    .tuple(fc.constantFrom(...frames), fc.array(text, { minLength: 3, maxLength: 10 }))
    .map(([frame, texts]) => texts.map((text) => frame(text)));
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          event.map((one) => [one]),
          alike,
        ),
        { maxLength: 5 },
      ),
      (groups) => {
        const events = groups.flat();
        expect(seen(events)).toEqual(events.map(parsed));
      },
    ),
    { numRuns: runs(1_000) },
  );
});

test('an event like the last one is the same object, with its own text', () => {
  const events: unknown[] = [];
  const texts: unknown[] = [];
  const read = reader((event) => {
    events.push(event);
    texts.push(structuredClone(event));
  });
  for (const text of ['one', 'two', 'three', 'four']) read(JSON.stringify({ delta: { text } }));
  expect(texts).toEqual(['one', 'two', 'three', 'four'].map((text) => ({ delta: { text } })));
  expect(events[3]).toBe(events[2]);
});

/** Events of a wire that differ in one text, which is not always what they say. */
const streams = {
  'openai-chat': [
    (text) => ({ choices: [{ index: 0, delta: { content: text } }] }),
    (text) => ({ choices: [{ index: 0, delta: { content: text }, logprobs: {} }] }),
    (text) => ({ choices: [{ index: 0, delta: { reasoning: text, content: 'and' } }] }),
    (text) => ({ choices: [{ index: 0, delta: { other: text } }] }),
    (text) => ({ id: text, choices: [{ index: 0, delta: { content: 'same' } }] }),
    (text) => ({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { name: text } }] } }] }),
    (text) => ({ choices: [{ index: 0, delta: { content: 'x' }, finish_reason: text }] }),
    () => ({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } }),
  ],
  'anthropic-messages': [
    (text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
    (text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: text } }),
    (text) => ({ type: 'content_block_start', index: 0, content_block: { type: 'text', text } }),
    (text) => ({ type: text, index: 0, delta: { type: 'text_delta', text: 'same' } }),
    () => ({ type: 'content_block_stop', index: 0 }),
  ],
  gemini: [
    (text) => ({ candidates: [{ content: { parts: [{ text }] } }], usageMetadata: { totalTokenCount: 1 } }),
    (text) => ({ candidates: [{ content: { parts: [{ text, thought: true }, { text: 'too' }] } }] }),
    (text) => ({ candidates: [{ content: { parts: [{ text: 'same' }] }, finishReason: text }] }),
  ],
} satisfies Partial<Record<string, ((text: string) => object)[]>>;

test.each(Object.entries(streams) as [keyof typeof streams, ((text: string) => object)[]][])(
  'a stream of %s says the same whether events repeat or not',
  (wire, frames) => {
    const read = (events: readonly string[]) => {
      const told: NeutralEvent[] = [];
      const losses = new Losses('lenient', 'm');
      const steps = new StreamSteps(callIds(), (event) => told.push(event));
      const answer = wireTable[wire].translation.read(steps, losses);
      for (const data of events) {
        try {
          answer.event(data, 'content_block_delta');
        } catch (error) {
          told.push(error as NeutralEvent);
        }
      }
      return { told, losses: losses.all(), usage: steps.usage, model: steps.model };
    };
    const word = fc.oneof(fc.constantFrom('', 'same', 'stop', 'STOP', 'a\\b'), fc.string({ maxLength: 4 }));
    const alike = fc
      .tuple(fc.constantFrom(...frames), fc.array(word, { minLength: 2, maxLength: 6 }))
      .map(([frame, texts]) => texts.map((text) => JSON.stringify(frame(text))));
    fc.assert(
      fc.property(fc.array(alike, { maxLength: 5 }), (groups) => {
        const events = groups.flat();
        // Blanks at the end make each event one of its own.
        const apart = events.map((data, at) => data + ' '.repeat(at));
        expect(read(events)).toEqual(read(apart));
      }),
      { numRuns: runs(1_000) },
    );
  },
);
