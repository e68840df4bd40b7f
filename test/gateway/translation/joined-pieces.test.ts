import { expect, test } from 'vitest';
import { Losses } from '../../../src/gateway/translation/losses.ts';
import { callIds } from '../../../src/gateway/translation/stream-steps.ts';
import { streamTranscoder } from '../../../src/gateway/translation/translate-answer.ts';
import { wireTable } from '../../../src/gateway/wires/wire-table.ts';
import type { Wire } from '../../../src/suite/model-config.ts';

function transcoder(to: Wire = 'anthropic-messages') {
  const request = { model: 'm', streamed: true, usageAsked: true, messages: [], tools: [], stop: [] };
  const { translation } = wireTable['openai-chat'];
  const asked = { request, at: 0, losses: new Losses('lenient', 'm') };
  const client = wireTable[to].translation;
  const { push, problem } = streamTranscoder(translation, client, asked, callIds());
  return { push: (bytes: Buffer) => Buffer.concat(push(bytes)), problem };
}

const chunk = (delta: object, finish_reason: string | null = null) =>
  Buffer.from(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
const words = ['one', ' two', ' three'].map((content) => chunk({ content }));

const textsIn = (bytes: Buffer) =>
  [...bytes.toString().matchAll(/"text_delta","text":("[^"]*")/g)].map(([, text]) => JSON.parse(text ?? ''));

test('pieces of a text that arrive together are one piece for the client', () => {
  const stream = transcoder();
  const ready = stream.push(Buffer.concat([...words, chunk({ reasoning_content: 'hm' }), ...words]));
  expect(textsIn(ready)).toEqual(['one two three', 'one two three']);
});

test('each piece that arrives alone goes on at once', () => {
  const stream = transcoder();
  expect(words.map((bytes) => textsIn(stream.push(bytes)))).toEqual([['one'], [' two'], [' three']]);
});

test('what came before an event that cannot be read is told, in the same push, and then the event', () => {
  const stream = transcoder();
  const ready = stream.push(Buffer.concat([...words, Buffer.from('data: garbage\n\n')]));
  expect(textsIn(ready)).toEqual(['one two three']);
  expect(ready.toString()).toContain('an event is not a JSON object: garbage');
  expect(stream.problem()?.message).toContain('garbage');
  expect(stream.push(chunk({ content: 'more' })).toString()).toBe('');
});

test('the client is told what cannot be read, also if the end of the answer arrives with it', () => {
  const stream = transcoder();
  const garbage = Buffer.from('data: garbage\n\n');
  const ready = stream.push(
    Buffer.concat([...words, garbage, chunk({}, 'stop'), Buffer.from('data: [DONE]\n\n')]),
  );
  expect(ready.toString()).toContain('an event is not a JSON object: garbage');
  expect(ready.toString()).not.toContain('message_stop');
  expect(stream.problem()?.message).toContain('garbage');
});

test('a long text, and long arguments, are the same in each event that repeats them', () => {
  const stream = transcoder('openai-responses');
  const text = '"quoted"\n\\ – \u{1F600} '.repeat(300);
  const call = { index: 0, id: 'c', function: { name: 'f', arguments: JSON.stringify({ text }) } };
  // The second piece is long, and begins within a character of two units.
  const cut = text.indexOf('\u{1F600}') + 1;
  const pieces = [text.slice(0, cut), text.slice(cut)].map((content) => chunk({ content }));
  const answer = [...pieces, chunk({ tool_calls: [call] }), chunk({}, 'tool_calls')];
  const written = [...answer, Buffer.from('data: [DONE]\n\n')].map(stream.push).join('');
  const events = [...written.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? ''));
  const of = (type: string) => events.find((event) => event.type === `response.${type}`);
  const content = [{ type: 'output_text', text, annotations: [], logprobs: [] }];
  const called = { type: 'function_call', arguments: call.function.arguments };
  expect(of('output_text.done').text).toBe(text);
  expect(of('content_part.done').part).toEqual(content[0]);
  expect(of('output_item.done').item.content).toEqual(content);
  expect(of('function_call_arguments.done').arguments).toBe(called.arguments);
  expect(of('completed').response.output).toMatchObject([{ content }, called]);
});
