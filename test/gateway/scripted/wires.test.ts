import { describe, expect, test } from 'vitest';
import { meterOf } from '../../../src/gateway/metering.ts';
import type { Wire } from '../../../src/suite/model-config.ts';
import { document, events, scripted, send, shellOffered, text, wires } from './asking.ts';

const answering = scripted({
  turns: [
    {
      text: 'I will see to it – “twice”. 😀',
      run: ['echo "a"', 'ls'],
      usage: { input: 1200, output: 50, cacheRead: 1000, cacheWrite: 100, reasoning: 20 },
      stream: { characters: 5 },
    },
  ],
});
const said = 'I will see to it – “twice”. 😀';
const parameters = { type: 'object', properties: { command: { type: 'string' } } };
const question = (wire: (typeof wires)[number]) => ({
  model: 'm-1',
  tools: shellOffered(wire, 'bash', parameters),
  ...(wire === 'openai-responses'
    ? { input: [{ role: 'user', content: [{ type: 'input_text', text: 'x' }] }] }
    : { messages: [{ role: 'user', content: 'x' }] }),
});

function readingOf(wire: Wire, body: string) {
  const meter = meterOf(wire, 200, 'text/plain');
  meter.chunk(Buffer.from(body));
  return meter.end();
}

const streamOf = (events: readonly { raw: string }[]) => events.map(({ raw }) => `data: ${raw}\n\n`).join('');

describe('a streamed answer', () => {
  test('of openai-chat is made of chunks: role, text, calls, reason, usage where asked for', async () => {
    const ask = (more: object) => events(answering, 'openai-chat', { ...question('openai-chat'), ...more });
    const all = await ask({ stream_options: { include_usage: true } });
    expect(all.at(-1)?.data).toBe('[DONE]');
    expect(all.at(-2)?.data).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 1200, completion_tokens: 50, total_tokens: 1250 },
    });
    const deltas = all.slice(0, -2).map(({ data }) => data.choices[0]);
    expect(deltas[0].delta).toEqual({ role: 'assistant', content: '' });
    expect(deltas.map(({ delta }) => delta.content ?? '').join('')).toBe(said);
    const calls = deltas.flatMap(({ delta }) => delta.tool_calls ?? []);
    expect(calls.filter(({ id }) => id).map(({ index, function: { name } }) => [index, name])).toEqual([
      [0, 'bash'],
      [1, 'bash'],
    ]);
    const given = (wanted: number) =>
      calls
        .filter(({ index }) => index === wanted)
        .map((call) => call.function.arguments)
        .join('');
    expect(JSON.parse(given(0))).toEqual({ command: 'echo "a"' });
    expect(deltas.at(-1)).toMatchObject({ delta: {}, finish_reason: 'tool_calls' });
    expect((await ask({})).some(({ raw }) => raw.includes('usage'))).toBe(false);
  });

  test('of openai-responses has every event of its life, numbered', async () => {
    const all = await events(answering, 'openai-responses', question('openai-responses'));
    expect(all.map(({ data }) => data.sequence_number)).toEqual(all.map((_, index) => index));
    expect(all.every(({ event, data }) => event === data.type)).toBe(true);
    const names = all.map(({ event }) => event?.replace('response.', ''));
    const once = names.filter((name, index) => name !== names[index - 1]);
    const call = [
      'output_item.added',
      'function_call_arguments.delta',
      'function_call_arguments.done',
      'output_item.done',
    ];
    expect(once).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      ...call,
      ...call,
      'completed',
    ]);
    const { response } = all.at(-1)?.data ?? {};
    expect(response.output.map(({ type }: { type: string }) => type)).toEqual([
      'message',
      'function_call',
      'function_call',
    ]);
    expect(response.usage).toEqual({
      input_tokens: 1200,
      input_tokens_details: { cached_tokens: 1000, cache_write_tokens: 100 },
      output_tokens: 50,
      output_tokens_details: { reasoning_tokens: 20 },
      total_tokens: 1250,
    });
  });

  test('of anthropic-messages opens, fills and closes each block', async () => {
    const all = await events(answering, 'anthropic-messages', question('anthropic-messages'));
    expect(all.every(({ event, data }) => event === data.type)).toBe(true);
    const names = all.map(({ event }) => event);
    const block = ['content_block_start', 'content_block_delta', 'content_block_stop'];
    expect(names.filter((name, index) => name !== names[index - 1])).toEqual([
      'message_start',
      'ping',
      ...block,
      ...block,
      ...block,
      'message_delta',
      'message_stop',
    ]);
    expect(all.flatMap(({ data }) => data.delta?.text ?? []).join('')).toBe(said);
    const input = all
      .filter(({ data }) => data.index === 1)
      .flatMap(({ data }) => data.delta?.partial_json ?? []);
    expect(JSON.parse(input.join(''))).toEqual({ command: 'echo "a"' });
    expect(all.at(-2)?.data).toMatchObject({
      delta: { stop_reason: 'tool_use' },
      usage: {
        input_tokens: 100,
        cache_read_input_tokens: 1000,
        cache_creation_input_tokens: 100,
        output_tokens: 50,
      },
    });
  });

  test.each(wires)(
    'of %s says the same as one in one piece, and the gateway reads the same usage',
    async (wire) => {
      const more = wire === 'openai-chat' ? { stream_options: { include_usage: true } } : {};
      const streamed = await events(answering, wire, { ...question(wire), ...more });
      const whole = await document(answering, wire, question(wire));
      const facts = readingOf(wire, JSON.stringify(whole.document));
      expect({ ...readingOf(wire, streamOf(streamed)), events: 0 }).toEqual(facts);
      expect(facts).toMatchObject({
        complete: true,
        failure: undefined,
        answeredBy: 'm-1',
        usage: { inputTokens: 1200, outputTokens: 50, totalTokens: 1250, cacheReadTokens: 1000 },
      });
    },
  );
});

describe.each(wires)('in %s', (wire) => {
  const ask = (turn: object) => document(scripted({ turns: [turn] }), wire, question(wire));
  const streamed = (turn: object) => events(scripted({ turns: [turn] }), wire, question(wire));

  test('usage is reckoned where the script gives none', async () => {
    const { document: answer } = await ask({ text: 'x'.repeat(40) });
    const { usage } = readingOf(wire, JSON.stringify(answer));
    expect(usage).toMatchObject({ outputTokens: 10 });
    expect(usage.inputTokens).toBeGreaterThan(10);
  });

  test('usage may be kept from the client', async () => {
    const { document: answer } = await ask({ text: 'x', usage: 'none' });
    expect(readingOf(wire, JSON.stringify(answer)).usage).toEqual({});
    const stream = streamOf(await streamed({ text: 'x', usage: 'none' }));
    expect(readingOf(wire, stream).usage).toEqual({});
  });

  test('an answer may be cut at its length or refused', async () => {
    const reasons = JSON.stringify([
      await ask({ text: 'half', stop: 'length' }),
      await ask({ text: 'no', stop: 'refusal' }),
      await streamed({ text: 'half', stop: 'length' }),
      await streamed({ text: 'no', stop: 'refusal' }),
    ]);
    expect(reasons.match(/"(length|max_tokens|max_output_tokens)"/g)?.length).toBeGreaterThanOrEqual(2);
    expect(reasons.match(/"refusal":"no"|"stop_reason":"refusal"/g)?.length).toBeGreaterThanOrEqual(2);
  });

  test('calls of named tools pass as the script has them, wrong ones too', async () => {
    const calls = [
      { tool: 'edit', arguments: { path: 'a', lines: [1, 2] } },
      { tool: 'edit', arguments: '{"path": ' },
    ];
    const all = (await streamed({ calls })).map(({ raw }) => raw).join('');
    expect(all).toContain('edit');
    const { document: answer } = await ask({ calls });
    expect(JSON.stringify(answer)).toContain('lines');
  });

  test('what is no request is refused in the own shape of the wire', async () => {
    const upstream = scripted({ turns: [{ text: 'x' }] });
    for (const [body, path, status] of [
      ['{', undefined, 400],
      ['[]', undefined, 400],
      ['{}', '/embeddings', 404],
    ] as const) {
      const refused = await document(upstream, wire, body, path ? { path } : {});
      expect(refused.status).toBe(status);
      expect(readingOf(wire, JSON.stringify(refused.document)).failure).toBeTruthy();
    }
  });
});

test('token counts are answered', async () => {
  const upstream = scripted({ turns: [{ text: 'x' }] });
  const body = { model: 'm', messages: [{ role: 'user', content: 'x'.repeat(400) }] };
  const count = await document(upstream, 'anthropic-messages', body, {
    path: '/messages/count_tokens?beta=true',
  });
  expect(count.document.input_tokens).toBeGreaterThan(100);
  expect(
    (await document(upstream, 'openai-responses', body, { path: '/responses/input_tokens' })).document,
  ).toEqual({ object: 'response.input_tokens', input_tokens: count.document.input_tokens });
});

test('streams are streams, and documents documents', async () => {
  const upstream = scripted({ turns: [{ text: 'x' }] });
  for (const wire of wires) {
    const stream = await send(upstream, wire, { ...question(wire), stream: true });
    expect(stream.headers['content-type']).toMatch(/^text\/event-stream/);
    await text(stream.body);
    expect((await send(upstream, wire, question(wire))).headers['content-type']).toBe('application/json');
  }
});
