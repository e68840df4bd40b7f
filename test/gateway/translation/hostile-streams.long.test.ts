import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { textOfEvent } from '../../../src/gateway/wires/lenient.ts';
import type { Wire } from '../../../src/suite/model-config.ts';
import { framesOf, heard, pairs, success, write } from './hostile-model.ts';

const event = (type: string, data: object) => textOfEvent({ event: type, data: { type, ...data } });

const chat = (choice: object) =>
  textOfEvent({ event: undefined, data: { id: 'c', choices: [{ index: 0, ...choice }] } });
const piece = (tool_call: object) => chat({ delta: { tool_calls: [tool_call] } });
const chatEnd = [chat({ delta: {}, finish_reason: 'tool_calls' }), 'data: [DONE]\n\n'];

const response = event('response.created', { response: { id: 'r', status: 'in_progress' } });
const responseEnd = event('response.completed', { response: { id: 'r', status: 'completed', output: [] } });

const message = event('message_start', { message: { id: 'm', content: [], usage: { input_tokens: 1 } } });
const block = (index: number) =>
  event('content_block_start', { index, content_block: { type: 'text', text: '' } });
const blockEnd = (index: number) => event('content_block_stop', { index });
const messageEnd = [
  event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } }),
  event('message_stop', {}),
];

const gemini = (...candidates: object[]) => textOfEvent({ event: undefined, data: { candidates } });

/** Streams whose events are fine, each alone, and that end well. */
const disorders: Record<Wire, Record<string, string[]>> = {
  'openai-chat': {
    'a piece of a call that has not begun': [piece({ index: 0, function: { arguments: '{}' } }), ...chatEnd],
    'a call without a name': [piece({ index: 0, id: 'c' }), ...chatEnd],
  },
  'openai-responses': {
    'two beginnings': [
      response,
      event('response.created', { response: { id: 'r2', status: 'in_progress' } }),
      responseEnd,
    ],
    'a call that has no arguments and never ends': [
      response,
      event('response.output_item.added', {
        output_index: 0,
        item: { type: 'function_call', call_id: 'c', name: 'bash' },
      }),
      responseEnd,
    ],
    'a completed response that says it is not': [
      response,
      event('response.completed', { response: { status: 'in_progress' } }),
    ],
  },
  'anthropic-messages': {
    'two beginnings': [
      message,
      event('message_start', { message: { id: 'm2', content: [] } }),
      ...messageEnd,
    ],
    'arguments in a text': [
      message,
      block(0),
      event('content_block_delta', { index: 0, delta: { type: 'input_json_delta', partial_json: '{}' } }),
      blockEnd(1),
      ...messageEnd,
    ],
    'no reason for the end': [message, event('message_stop', {})],
  },
  gemini: {
    'a call without a name': [
      gemini({ content: { parts: [{ functionCall: { args: {} } }] }, finishReason: 'STOP' }),
    ],
  },
};

describe.each(pairs)('$model to $client', ({ model, client }) => {
  test.each(Object.entries(disorders[model]))('%s is never a success', async (_, frames) => {
    const got = await heard(client, model, async (answer) => {
      await write(answer, frames);
      answer.end();
    });
    expect(got.text).not.toMatch(success[client]);
    expect(got.isWhole).toBe(false);
    expect(got.failure).toEqual(expect.any(String));
  });

  test('comments and empty events change nothing', async () => {
    const noise = [': still here\n\n', '\n\n', ':\n', 'retry: 1\n\n', 'id: 7\n\n', 'unknown: 1\n\n'];
    const frames = framesOf(model, [
      { type: 'text', text: 'Hello.' },
      { type: 'end', stop: 'done', sequence: undefined, usage: { input: 7, output: 5 } },
    ]);
    const got = await heard(client, model, async (answer) => {
      await write(
        answer,
        frames.flatMap((frame) => [...noise, frame]),
      );
      answer.end();
    });
    expect(got).toMatchObject({ isWhole: true, failure: undefined });
    expect(got.text).toMatch(success[client]);
  });
});

const clientOf = (model: Wire): Wire => (model === 'openai-responses' ? 'openai-chat' : 'openai-responses');

/** Endless streams: each piece is repeated. A client that waits for more leaves. */
const endless: [string, Wire, string, string][] = [
  ...(['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini'] as const).flatMap(
    (model): [string, Wire, string, string][] => [
      ['comments', model, '', ': still here\n\n'.repeat(4000)],
      ['one comment', model, ':', ' still here'.repeat(5000)],
      ['one event', model, 'data: {"x":"', 'x'.repeat(60_000)],
      ['one event of many lines', model, '', 'data: x\n'.repeat(8000)],
      ['an id', model, 'id: ', 'x'.repeat(60_000)],
    ],
  ),
  [
    'a signature',
    'anthropic-messages',
    `${message}${event('content_block_start', { index: 0, content_block: { type: 'thinking' } })}`,
    event('content_block_delta', {
      index: 0,
      delta: { type: 'signature_delta', signature: 'x'.repeat(60_000) },
    }),
  ],
  [
    'counts of unknown things',
    'anthropic-messages',
    message,
    event('message_delta', {
      delta: {},
      usage: Object.fromEntries(
        Array.from({ length: 200 }, (_, index) => [`${'x'.repeat(200)}_${index}_@`, 1]),
      ),
    }),
  ],
  [
    'alternating thoughts and words',
    'openai-chat',
    '',
    (chat({ delta: { reasoning_content: 't' } }) + chat({ delta: { content: 'w' } })).repeat(400),
  ],
];

/** Bytes after which a model that was not stopped is silent. */
const enough = 24_000_000;

test.each(endless)(
  'endless: %s from %s ends when it is too long, or when its client leaves',
  { timeout: 60_000 },
  async (_, model, beginning, repeated) => {
    const leaving = new AbortController();
    const ended = Promise.withResolvers<void>();
    const before = process.memoryUsage().rss;
    let most = 0;
    let round = 0;
    function* stream() {
      yield beginning;
      for (let sent = 0; sent < enough; sent += repeated.length) {
        most = Math.max(most, process.memoryUsage.rss());
        round += 1;
        yield repeated.replaceAll('@', String(round));
      }
    }
    const got = await heard(
      clientOf(model),
      model,
      async (answer: ServerResponse) => {
        answer.once('close', ended.resolve);
        await write(answer, stream());
        await delay(20);
        leaving.abort();
      },
      { signal: leaving.signal },
    );
    await ended.promise;
    expect(got.isWhole).toBe(false);
    expect(got.text).not.toMatch(success[clientOf(model)]);
    expect(got.failure).toEqual(expect.any(String));
    expect(most - before).toBeLessThan(300 * 2 ** 20);
  },
);
