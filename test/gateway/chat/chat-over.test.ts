import { describe, expect, test } from 'vitest';
import type { ChatRequest } from '../../../src/gateway/chat/chat.ts';
import { chatOver } from '../../../src/gateway/chat/chat-over.ts';
import { type Wire, wires } from '../../../src/suite/model-config.ts';
import { type Document, provider } from './provider.ts';

const signal = () => AbortSignal.timeout(60_000);
const hello: ChatRequest = { messages: [{ from: 'user', text: 'hello' }] };

/** What a plain answer looks like in each wire. */
const answers: Record<Wire, (said: { text?: string; call?: Document; stop?: string }) => Document> = {
  'openai-chat': ({ text, call, stop = 'stop' }) => ({
    model: 'm-2026',
    choices: [
      {
        finish_reason: stop,
        message: {
          role: 'assistant',
          content: text ?? null,
          ...(call && {
            tool_calls: [{ id: 'c1', type: 'function', function: { name: 'add', arguments: call } }],
          }),
        },
      },
    ],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  }),
  'openai-responses': ({ text, call, stop }) => ({
    model: 'm-2026',
    status: stop ? 'incomplete' : 'completed',
    incomplete_details: stop ? { reason: stop } : null,
    output: [
      { type: 'reasoning', summary: [] },
      ...(text ? [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] }] : []),
      ...(call ? [{ type: 'function_call', call_id: 'c1', name: 'add', arguments: call }] : []),
    ],
    usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
  }),
  'anthropic-messages': ({ text, call, stop = 'end_turn' }) => ({
    type: 'message',
    model: 'm-2026',
    stop_reason: stop,
    content: [
      ...(text ? [{ type: 'text', text }] : []),
      ...(call
        ? [
            {
              type: 'tool_use',
              id: 'c1',
              name: 'add',
              input: typeof call === 'string' ? JSON.parse(call) : call,
            },
          ]
        : []),
    ],
    usage: { input_tokens: 10, output_tokens: 5 },
  }),
  gemini: ({ text, call, stop = 'STOP' }) => ({
    modelVersion: 'm-2026',
    candidates: [
      {
        finishReason: stop,
        content: {
          role: 'model',
          parts: [
            ...(text ? [{ text }] : []),
            ...(call
              ? [
                  {
                    functionCall: {
                      id: 'c1',
                      name: 'add',
                      args: typeof call === 'string' ? JSON.parse(call) : call,
                    },
                  },
                ]
              : []),
          ],
        },
      },
    ],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5 },
  }),
};

describe.each(wires)('a chat over %s', (wire) => {
  const to = { wire, model: 'm' };
  const ask = async (answer: Parameters<(typeof answers)[Wire]>[0], request = hello) => {
    const { send, requests } = provider({ body: answers[wire](answer) });
    return { answer: await chatOver(send, to, request, signal()), sent: requests[0]?.body as Document };
  };

  test('brings back text, usage and the name the model gives itself', async () => {
    const { answer } = await ask({ text: 'Hi.' });
    expect(answer).toEqual({
      text: 'Hi.',
      calls: [],
      stopped: 'done',
      usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 },
      model: 'm-2026',
    });
  });

  test('brings back calls of tools', async () => {
    const { answer } = await ask({ text: 'I add.', call: '{"a": 1}' });
    expect(answer).toMatchObject({
      stopped: 'tools',
      calls: [{ id: 'c1', name: 'add', arguments: { a: 1 } }],
    });
  });

  test('carries the whole conversation', async () => {
    const { sent } = await ask(
      { text: 'ok' },
      {
        system: 'Be brief.',
        messages: [
          { from: 'user', text: 'first' },
          { from: 'model', text: 'I add.', calls: [{ id: 'c1', name: 'add', arguments: { a: 1 } }] },
          { from: 'tool', callId: 'c1', text: 'two', failed: true },
          { from: 'user', text: 'second' },
        ],
        tools: [{ name: 'add', description: 'adds', parameters: { type: 'object', properties: {} } }],
        temperature: 0,
        maxTokens: 100,
      },
    );
    expect(sent.stream).toBeFalsy();
    expect((sent.generationConfig ?? sent).temperature).toBe(0);
    const all = JSON.stringify(sent);
    for (const part of ['Be brief.', 'first', 'I add.', 'c1', 'two', 'second', 'adds', '100']) {
      expect(all).toContain(part);
    }
    // Gemini's path names the model.
    if (wire !== 'gemini') expect(all).toContain('"m"');
    expect(sent).toMatchSnapshot();
  });

  test('tells an answer that was cut and one that was refused', async () => {
    const cut = {
      'openai-chat': 'length',
      'openai-responses': 'max_output_tokens',
      'anthropic-messages': 'max_tokens',
      gemini: 'MAX_TOKENS',
    };
    const refused = {
      'openai-chat': 'content_filter',
      'openai-responses': 'content_filter',
      'anthropic-messages': 'refusal',
      gemini: 'SAFETY',
    };
    expect((await ask({ text: 'ha', stop: cut[wire] })).answer.stopped).toBe('length');
    expect((await ask({ text: 'no', stop: refused[wire] })).answer.stopped).toBe('refused');
  });

  test('asks for JSON of a schema', async () => {
    const schema = { name: 'verdict', schema: { type: 'object', properties: { ok: { type: 'boolean' } } } };
    const { sent } = await ask({ text: '{}' }, { ...hello, schema });
    expect(JSON.stringify(sent)).toContain('"ok":{"type":"boolean"}');
  });

  test('gives the upstream’s own words for a refusal', async () => {
    const body = { type: 'error', error: { type: 'invalid_request_error', message: 'no such model: m' } };
    const { send } = provider({ status: 404, body });
    await expect(chatOver(send, to, hello, signal())).rejects.toMatchObject({
      code: 'MODEL_REFUSED',
      message: 'the model m refused the request (404): no such model: m',
      hint: expect.stringContaining('baseUrl'),
    });
  });

  test.each(['This is a website', '', '{"choices": [', [], {}])(
    'says so when %j is all that comes',
    async (body) => {
      const { send } = provider({ body });
      await expect(chatOver(send, to, hello, signal())).rejects.toMatchObject({
        code: 'MODEL_ANSWER_UNREADABLE',
      });
    },
  );

  test('says so when the connection breaks, before or amid the answer', async () => {
    const broken = Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
    const failing = chatOver(() => Promise.reject(broken), to, hello, signal());
    await expect(failing).rejects.toMatchObject({ code: 'MODEL_UNREACHABLE', cause: broken });
    const half = async function* () {
      yield Buffer.from('{"choi');
      throw broken;
    };
    const cut = chatOver(async () => ({ status: 200, headers: {}, body: half() }), to, hello, signal());
    await expect(cut).rejects.toMatchObject({ code: 'MODEL_UNREACHABLE' });
  });

  test('throws the reason of an abort as it is', async () => {
    const gone = new AbortController();
    const reason = new Error('the trial is over');
    const asked = chatOver(
      (_request, given) =>
        new Promise((_, reject) => given.addEventListener('abort', () => reject(new Error('x')))),
      to,
      hello,
      gone.signal,
    );
    gone.abort(reason);
    await expect(asked).rejects.toBe(reason);
  });

  test('does not fill the memory with an answer that has no end', async () => {
    const endless = async function* () {
      const chunk = Buffer.alloc(2 ** 20, ' ');
      while (true) yield chunk;
    };
    const asked = chatOver(async () => ({ status: 200, headers: {}, body: endless() }), to, hello, signal());
    await expect(asked).rejects.toMatchObject({ code: 'MODEL_ANSWER_UNREADABLE' });
  });
});

describe('what one wire needs or lacks', () => {
  const chat = (body: Document, wire: Wire = 'openai-chat', request = hello) =>
    chatOver(provider({ body }).send, { wire, model: 'm' }, request, signal());

  test('malformed arguments are given as they came', async () => {
    const { calls } = await chat(answers['openai-chat']({ call: '{"a": ' }));
    expect(calls).toEqual([{ id: 'c1', name: 'add', arguments: { malformed: '{"a": ' } }]);
    expect(
      (await chat(answers['openai-responses']({ call: '[1]' }), 'openai-responses')).calls[0]?.arguments,
    ).toEqual({
      malformed: '[1]',
    });
  });

  test('servers that give arguments as an object, or none, are understood', async () => {
    const argumentsOf = async (call: Document) =>
      (await chat(answers['openai-chat']({ call: call ?? { toJSON: () => null } }))).calls[0]?.arguments;
    expect(await argumentsOf({ a: 1 })).toEqual({ a: 1 });
    expect(await argumentsOf(null)).toEqual({});
  });

  test('calls without an id get one of their own in the conversation', async () => {
    const body = answers['openai-chat']({ call: '{}' });
    body.choices[0].message.tool_calls = [
      { function: { name: 'a', arguments: '{}' } },
      { id: '', function: { name: 'b', arguments: '{}' } },
    ];
    expect((await chat(body)).calls.map(({ id }) => id)).toEqual(['call_0', 'call_1']);
  });

  test('a refusal of OpenAI is text too', async () => {
    const body = answers['openai-chat']({});
    body.choices[0].message.refusal = 'I will not.';
    expect(await chat(body)).toMatchObject({ text: 'I will not.', stopped: 'refused' });
  });

  test('a schema is a tool that must be called over anthropic-messages, and its input the text', async () => {
    const schema = { name: 'add', schema: { type: 'object' } };
    const { send, requests } = provider({ body: answers['anthropic-messages']({ call: { a: 1 } }) });
    const answer = await chatOver(
      send,
      { wire: 'anthropic-messages', model: 'm' },
      { ...hello, schema },
      signal(),
    );
    expect(requests[0]?.body.tool_choice).toEqual({ type: 'tool', name: 'add' });
    expect(answer).toMatchObject({ text: '{"a":1}', calls: [], stopped: 'done' });
  });

  test('anthropic-messages gets its limit and its version in any case', async () => {
    const { send, requests } = provider({ body: answers['anthropic-messages']({ text: 'ok' }) });
    await chatOver(send, { wire: 'anthropic-messages', model: 'm' }, hello, signal());
    expect(requests[0]?.body.max_tokens).toBeGreaterThan(0);
    expect(requests[0]?.headers['anthropic-version']).toBe('2023-06-01');
  });

  test.each([
    { error: { message: 'too long', code: 'context_length_exceeded' } },
    {
      error: { message: 'the request exceeds the available context size', type: 'exceed_context_size_error' },
    },
    {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' },
    },
    { object: 'error', message: "This model's maximum context length is 4096 tokens.", code: 400 },
  ])('a conversation that outgrew its model is told apart: %j', async (body) => {
    const { send } = provider({ status: 400, body });
    const asked = chatOver(send, { wire: 'openai-chat', model: 'm' }, hello, signal());
    await expect(asked).rejects.toMatchObject({ code: 'MODEL_CONTEXT_FULL' });
  });

  test.each([
    [{ error: 'model "m" not found' }, 'model "m" not found'],
    [{ message: 'gone' }, 'gone'],
    [{ detail: 'Not Found' }, '(400): Not Found'],
    ['<html>  Bad\n gateway</html>', '(400): a web page: Bad gateway'],
    ['', 'an empty body'],
  ])('error bodies of any shape are told: %j', async (body, expected) => {
    const { send } = provider({ status: 400, body });
    const asked = chatOver(send, { wire: 'openai-chat', model: 'm' }, hello, signal());
    await expect(asked).rejects.toThrow(expected);
  });
});
