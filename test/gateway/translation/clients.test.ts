import { expect, test } from 'vitest';
import { wires } from '../../../src/suite/model-config.ts';
import { clients } from './clients.ts';
import { scriptedPlace } from './translated-place.ts';

/** Two turns: parallel calls of a tool, and an answer to their results. */
const script = {
  turns: [
    {
      text: 'I look.',
      run: ['ls', 'pwd'],
      usage: { input: 100, output: 30, cacheRead: 40, reasoning: 10 },
    },
    { when: { result: 'a.txt' }, text: 'One file – “a.txt” 🎉.', usage: { input: 200, output: 20 } },
  ],
};

const ends: Record<string, [unknown, unknown]> = {
  'openai-chat': ['tool_calls', 'stop'],
  'openai-responses': ['completed', 'completed'],
  'anthropic-messages': ['tool_use', 'end_turn'],
  gemini: ['STOP', 'STOP'],
};

const pairs = Object.entries(clients).flatMap(([wire, client]) =>
  wires.flatMap((model) => [true, false].map((streamed) => ({ wire, client, model, streamed }))),
);

test.each(pairs)(
  'the library for $wire talks to a model of $model, streamed: $streamed',
  async ({ wire, client, model, streamed }) => {
    await using place = await scriptedPlace(model, script);
    const first = await client.ask(place, [{ user: 'What is here?' }], streamed);
    expect(first).toMatchObject({
      text: 'I look.',
      stop: ends[wire]?.[0],
      input: 100,
      output: 30,
      cached: 40,
    });
    expect(first.calls).toMatchObject([
      { name: 'bash', arguments: { command: 'ls' } },
      { name: 'bash', arguments: { command: 'pwd' } },
    ]);
    expect(new Set(first.calls.map(({ id }) => id)).size).toBe(2);
    const second = await client.ask(
      place,
      [{ user: 'What is here?' }, { answer: first, results: ['a.txt', '/work'] }],
      streamed,
    );
    expect(second).toMatchObject({
      text: 'One file – “a.txt” 🎉.',
      stop: ends[wire]?.[1],
      input: 200,
      output: 20,
    });
    expect(second.calls).toEqual([]);

    const { exchanges, usage } = await place.session.account();
    expect(exchanges.map((exchange) => [exchange.wire, exchange.failure])).toEqual([
      [model, undefined],
      [model, undefined],
    ]);
    for (const { translation } of exchanges) {
      expect(translation).toEqual(wire === model ? undefined : { from: wire, losses: [] });
    }
    expect(usage).toMatchObject([{ usage: { inputTokens: 300, outputTokens: 50 } }]);
  },
);
