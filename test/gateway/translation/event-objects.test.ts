import fc from 'fast-check';
import { expect, test } from 'vitest';
import { eventObjects } from '../../../src/gateway/translation/event-objects.ts';
import { runs } from '../../short-tests.ts';

/** What a reader saw of each event, at the time. */
function seen(events: readonly string[]): unknown[] {
  const read = eventObjects();
  return events.map((data) => {
    try {
      return structuredClone(read(data));
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
    { numRuns: runs(3_000) },
  );
});

test('an event like the last one is the same object, with its own text', () => {
  const read = eventObjects();
  const event = (text: string) => JSON.stringify({ delta: { text } });
  read(event('one'));
  read(event('two'));
  const third = read(event('three'));
  expect(third).toEqual({ delta: { text: 'three' } });
  expect(read(event('four'))).toBe(third);
  expect(third).toEqual({ delta: { text: 'four' } });
});
