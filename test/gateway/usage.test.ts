import { expect, test } from 'vitest';
import { costOf } from '../../src/gateway/exchange.ts';
import { meterOf, readAhead } from '../../src/gateway/metering.ts';
import type { Wire } from '../../src/suite/model-config.ts';
import { place, question } from './gateway-fixture.ts';
import { chatAnswer, json } from './test-upstream.ts';

const event = (name: string | undefined, data: object | string) =>
  `${name ? `event: ${name}\n` : ''}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
const typed = (data: { type: string; [member: string]: unknown }) => event(data.type, data);

/**
 * A whole stream of each wire, with misleading parts: text that looks like an event, and characters of
 * several bytes.
 */
const trap = 'é"usage":{"prompt_tokens":9999} {"type":"message_delta"} 😀';
const streams: Record<Wire, { text: string; usage: object }> = {
  'openai-chat': {
    text: [
      ': keep-alive\n\n',
      event(undefined, { model: 'm-1', choices: [{ delta: { content: trap } }], usage: null }),
      event(undefined, { model: 'm-1', choices: [{ delta: {}, finish_reason: 'stop' }] }),
      event(undefined, {
        model: 'm-1',
        choices: [],
        usage: {
          prompt_tokens: 120,
          completion_tokens: 30,
          total_tokens: 150,
          prompt_tokens_details: { cached_tokens: 100 },
          completion_tokens_details: { reasoning_tokens: 25 },
        },
      }),
      event(undefined, '[DONE]'),
    ].join(''),
    usage: { inputTokens: 120, outputTokens: 30, totalTokens: 150, cacheReadTokens: 100 },
  },
  'openai-responses': {
    text: [
      typed({
        type: 'response.created',
        response: { model: 'm-1', status: 'in_progress', usage: null },
      }),
      typed({ type: 'response.output_text.delta', delta: trap }),
      typed({
        type: 'response.completed',
        response: {
          model: 'm-1',
          status: 'completed',
          usage: {
            input_tokens: 120,
            input_tokens_details: { cached_tokens: 100 },
            output_tokens: 30,
            output_tokens_details: { reasoning_tokens: 25 },
            total_tokens: 150,
          },
        },
      }),
    ].join(''),
    usage: { inputTokens: 120, outputTokens: 30, totalTokens: 150, cacheReadTokens: 100 },
  },
  'anthropic-messages': {
    text: [
      typed({
        type: 'message_start',
        message: {
          model: 'm-1',
          usage: {
            input_tokens: 5,
            cache_read_input_tokens: 100,
            cache_creation_input_tokens: 15,
            output_tokens: 1,
          },
        },
      }),
      typed({ type: 'ping' }),
      typed({ type: 'content_block_delta', delta: { type: 'text_delta', text: trap } }),
      typed({ type: 'message_delta', delta: {}, usage: { output_tokens: 30, input_tokens: null } }),
      typed({ type: 'message_stop' }),
    ].join(''),
    usage: {
      inputTokens: 120,
      outputTokens: 30,
      totalTokens: 150,
      cacheReadTokens: 100,
      cacheWriteTokens: 15,
    },
  },
  gemini: {
    text: [
      event(undefined, {
        candidates: [{ content: { role: 'model', parts: [{ text: trap }] } }],
        modelVersion: 'm-1',
      }),
      event(undefined, {
        candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, finishReason: 'STOP' }],
        modelVersion: 'm-1',
        usageMetadata: {
          promptTokenCount: 120,
          candidatesTokenCount: 5,
          thoughtsTokenCount: 25,
          cachedContentTokenCount: 100,
        },
      }),
    ].join(''),
    usage: { inputTokens: 120, outputTokens: 30, totalTokens: 150, cacheReadTokens: 100 },
  },
};

const wires = Object.keys(streams) as Wire[];

function read(wire: Wire, pieces: Buffer[]) {
  const meter = meterOf(wire, 200, 'text/event-stream; charset=utf-8');
  for (const piece of pieces) meter.chunk(piece);
  return meter.end();
}

test.for(wires)('the usage of an %s stream is the same wherever its bytes are cut', (wire) => {
  const { text, usage } = streams[wire];
  const variants = [text, text.replaceAll('\n', '\r\n'), text.slice(0, -2)];
  for (const bytes of variants.map((variant) => Buffer.from(variant))) {
    for (let at = 0; at <= bytes.length; at += 1) {
      const reading = read(wire, [bytes.subarray(0, at), bytes.subarray(at)]);
      expect(reading, `cut at ${at}`).toMatchObject({
        usage,
        answeredBy: 'm-1',
        complete: true,
        failure: undefined,
      });
    }
    const single = [...bytes].map((byte) => Buffer.from([byte]));
    expect(read(wire, single).usage).toEqual(usage);
  }
});

test.for(wires)('an %s stream that a server sends as JSON is read, wherever its bytes are cut', (wire) => {
  const { text, usage } = streams[wire];
  const bytes = Buffer.from(`\uFEFF\n${text}`);
  // Not within its first character, which would not be blank.
  for (let at = 3; at <= 20; at += 1) {
    const first = bytes.subarray(0, at);
    readAhead(wire, first);
    const meter = meterOf(wire, 200, 'application/json');
    for (const piece of [first, bytes.subarray(at)]) meter.chunk(piece);
    expect(meter.end(), `cut at ${at}`).toMatchObject({ usage, complete: true });
  }
});

test.for(wires)('an %s stream that is cut tells no number that is not yet final', (wire) => {
  const { text, usage } = streams[wire];
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += 1) {
    const reading = read(wire, [bytes.subarray(0, at)]);
    expect(usage).toMatchObject(reading.usage);
    expect(reading.complete && reading.usage === undefined).toBe(false);
  }
  expect(read(wire, [bytes.subarray(0, bytes.length / 3)])).toMatchObject({ complete: false });
});

test('answers that are not streamed report the same usage', () => {
  const answers: Record<Wire, object> = {
    'openai-chat': {
      model: 'm-1',
      choices: [{ message: { content: '' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 120, completion_tokens: 30, prompt_cache_hit_tokens: 100 },
    },
    'openai-responses': {
      model: 'm-1',
      status: 'incomplete',
      output: [],
      usage: { input_tokens: 120, output_tokens: 30, input_tokens_details: { cached_tokens: 100 } },
    },
    'anthropic-messages': {
      type: 'message',
      model: 'm-1',
      content: [],
      usage: { input_tokens: 20, cache_read_input_tokens: 100, output_tokens: 30 },
    },
    gemini: {
      modelVersion: 'm-1',
      candidates: [],
      usageMetadata: { promptTokenCount: 120, candidatesTokenCount: 30, cachedContentTokenCount: 100 },
    },
  };
  for (const wire of wires) {
    const meter = meterOf(wire, 200, 'application/json');
    meter.chunk(Buffer.from(JSON.stringify(answers[wire])));
    expect(meter.end(), wire).toMatchObject({
      usage: { inputTokens: 120, outputTokens: 30, totalTokens: 150, cacheReadTokens: 100 },
      complete: true,
    });
  }
});

test('an error that comes in a stream is a failure', () => {
  const errors: Record<Wire, string> = {
    'openai-chat': event(undefined, { error: { message: 'overloaded' } }),
    'openai-responses': typed({
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'server_error', message: 'overloaded' } },
    }),
    'anthropic-messages': typed({
      type: 'error',
      error: { type: 'overloaded_error', message: 'overloaded' },
    }),
    gemini: event(undefined, { error: { code: 503, message: 'overloaded', status: 'UNAVAILABLE' } }),
  };
  for (const wire of wires) expect(read(wire, [Buffer.from(errors[wire])]).failure, wire).toBe('overloaded');
});

test('a stream that comes in one large piece is read as any other', () => {
  const { text, usage } = streams['anthropic-messages'];
  const one = Buffer.from(': keep-alive\n\n'.repeat(1_200_000) + text);
  expect(read('anthropic-messages', [one])).toMatchObject({ usage, complete: true });
});

test('an event larger than anything real is passed over, and the memory kept', () => {
  const meter = meterOf('openai-chat', 200, 'text/event-stream');
  const megabyte = Buffer.alloc(1024 * 1024, 'x');
  meter.chunk(Buffer.from('data: '));
  for (let count = 0; count < 40; count += 1) meter.chunk(megabyte);
  expect(meter.end()).toMatchObject({ usage: {}, complete: false });
});

test('cached tokens are paid once, at their own price', () => {
  const prices = { date: '2026-01-01', input: 2, output: 10, cacheRead: 0.2, cacheWrite: 2.5 };
  const usage = {
    inputTokens: 1_000_000,
    outputTokens: 100_000,
    cacheReadTokens: 600_000,
    cacheWriteTokens: 100_000,
  };
  expect(costOf(usage, prices)).toBeCloseTo(0.3 * 2 + 0.6 * 0.2 + 0.1 * 2.5 + 1);
  expect(costOf(usage, { date: '2026-01-01', input: 2, output: 10 })).toBeCloseTo(2 + 1);
  expect(costOf({ inputTokens: 5 }, prices)).toBeUndefined();
  expect(costOf(usage, undefined)).toBeUndefined();
});

test('usage is separate by role and model, with the date of its prices and without unknown numbers', async () => {
  const prices = { date: '2026-02-03', input: 1, output: 10 };
  const untold = { ...chatAnswer, usage: { prompt_tokens: 10, completion_tokens: 1 } };
  await using at = await place(
    { model: { prices }, session: { models: { agent: ['big', 'other'], judge: ['big'] } } },
    json(200, chatAnswer),
    json(200, untold),
    json(400, { error: { message: 'no' } }),
    json(200, chatAnswer),
    json(200, chatAnswer),
  );
  const judge = { authorization: `Bearer ${at.session.token('judge')}` };
  for (let count = 0; count < 3; count += 1) await at.sandbox.ask({ headers: at.agent, body: question });
  await at.sandbox.ask({ headers: at.agent, body: { ...question, model: 'other' } });
  await at.sandbox.ask({ headers: judge, body: question });
  const account = await at.session.account();
  expect(account.usage).toEqual([
    {
      role: 'agent',
      model: 'big',
      answeredBy: 'big-1-2026',
      behind: { id: expect.any(String), at: expect.stringMatching(/^[0-9a-f]{16}$/) },
      requests: 3,
      usage: { inputTokens: 110, outputTokens: 21, totalTokens: 131, costUsd: expect.closeTo(320 / 1e6, 9) },
      pricesOf: '2026-02-03',
    },
    {
      role: 'agent',
      model: 'other',
      answeredBy: 'big-1-2026',
      behind: { id: expect.any(String), at: expect.stringMatching(/^[0-9a-f]{16}$/) },
      requests: 1,
      usage: { inputTokens: 100, outputTokens: 20, totalTokens: 120, cacheReadTokens: 40 },
      pricesOf: undefined,
    },
    {
      role: 'judge',
      model: 'big',
      answeredBy: 'big-1-2026',
      behind: { id: expect.any(String), at: expect.stringMatching(/^[0-9a-f]{16}$/) },
      requests: 1,
      usage: {
        inputTokens: 100,
        outputTokens: 20,
        totalTokens: 120,
        cacheReadTokens: 40,
        costUsd: expect.closeTo(300 / 1e6, 9),
      },
      pricesOf: '2026-02-03',
    },
  ]);
});

test('bodies are kept where the model says so, as the sandbox sent and saw them', async () => {
  const seen: string[] = [];
  await using at = await place(
    {
      model: { record: 'full' },
      session: { observe: (exchange, asked) => seen.push(exchange.model, `${asked}`) },
    },
    json(200, chatAnswer),
  );
  await at.sandbox.ask({ headers: at.agent, body: question });
  const [exchange] = (await at.session.account()).exchanges;
  const kept = [exchange?.requestBody, exchange?.responseBody].map(
    (sha256) => `${at.kept.get(sha256 ?? '')}`,
  );
  expect(kept).toEqual([JSON.stringify(question), JSON.stringify(chatAnswer)]);
  expect(seen).toEqual(['big', kept[0]]);
});

test('a body that cannot be kept is said in the record, and the answer still arrives', async () => {
  const keep = () => Promise.reject(new Error('the disk is full'));
  await using at = await place({ model: { record: 'full' }, session: { keep } }, json(200, chatAnswer));
  expect(await at.sandbox.ask({ headers: at.agent, body: question })).toMatchObject({ status: 200 });
  expect((await at.session.account()).exchanges[0]?.failure).toContain('the disk is full');
});
