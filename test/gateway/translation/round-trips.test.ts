import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { modelAnswers } from '../../../src/bounds/model.ts';
import { wholeAnswer } from '../../../src/gateway/translation/answer-stream.ts';
import { Losses } from '../../../src/gateway/translation/losses.ts';
import {
  eventsOf,
  type NeutralAnswer,
  type NeutralEvent,
} from '../../../src/gateway/translation/neutral-answer.ts';
import type {
  Content,
  ModelPart,
  NeutralMessage,
  NeutralRequest,
} from '../../../src/gateway/translation/neutral-request.ts';
import { callIds, StreamSteps } from '../../../src/gateway/translation/stream-steps.ts';
import type { JsonObject } from '../../../src/gateway/wires/lenient.ts';
import { allWires, wireTable } from '../../../src/gateway/wires/wire-table.ts';
import type { Wire } from '../../../src/suite/model-config.ts';

/** Any text that JSON and UTF-8 carry, and that is not blank: blank parts have no place on some wires. */
const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }).filter((one) => one.trim() !== '');
const name = fc.stringMatching(/^[a-z][a-z_]{0,12}$/);
const args = fc
  .dictionary(
    fc.stringMatching(/^[a-z]{1,8}$/),
    fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null)),
  )
  .map((value) => JSON.stringify({ ...value }));
const base64 = fc
  .uint8Array({ minLength: 1, maxLength: 20 })
  .map((bytes) => Buffer.from(bytes).toString('base64'));
const image = fc.record({
  type: fc.constant('image' as const),
  mediaType: fc.constant('image/png'),
  data: base64,
});
const textPart = fc.record({ type: fc.constant('text' as const), text });
const content: fc.Arbitrary<Content> = fc.oneof(textPart, image);

const signed: ReadonlySet<Wire> = new Set<Wire>(['anthropic-messages', 'openai-responses', 'gemini']);

/** What a model says in one message: thoughts, a text, calls, as the wires order them. */
function modelParts(wire: Wire): fc.Arbitrary<ModelPart[]> {
  const reasoning = fc
    .record({ type: fc.constant('reasoning' as const), text, signature: fc.stringMatching(/^[\w+/]{8,20}$/) })
    .map(({ signature, ...part }): ModelPart => (signed.has(wire) ? { ...part, signature } : part));
  const call = fc.record({ type: fc.constant('call' as const), id: fc.constant(''), name, arguments: args });
  return fc
    .tuple(
      fc.array(reasoning, { maxLength: 1 }),
      fc.array(textPart, { maxLength: 1 }),
      fc.array(call, { maxLength: 3 }),
    )
    .map((parts): ModelPart[] => parts.flat())
    .filter((parts) => parts.some(({ type }) => type !== 'reasoning'));
}

/** Turns of a user and a model, with a result for each call. Ids are numbered through. */
function messages(wire: Wire): fc.Arbitrary<NeutralMessage[]> {
  const failed = wire === 'anthropic-messages' || wire === 'gemini' ? fc.boolean() : fc.constant(false);
  const turn = fc.record({
    user: fc.array(content, { minLength: 1, maxLength: 3 }),
    model: modelParts(wire),
    result: text,
    failed,
  });
  return fc.array(turn, { minLength: 1, maxLength: 3 }).map((turns) => {
    let calls = 0;
    return turns.flatMap((each): NeutralMessage[] => {
      const parts = each.model.map((part) =>
        part.type === 'call' ? { ...part, id: `call_${calls++}` } : part,
      );
      const results = parts.flatMap((part): NeutralMessage[] =>
        part.type === 'call'
          ? [
              {
                from: 'tool',
                callId: part.id,
                parts: [{ type: 'text', text: each.result }],
                failed: each.failed,
              },
            ]
          : [],
      );
      return [{ from: 'user', parts: each.user }, { from: 'model', parts }, ...results];
    });
  });
}

function request(wire: Wire): fc.Arbitrary<NeutralRequest> {
  const tool = fc.record({
    name,
    description: text,
    parameters: fc.constant({ type: 'object', properties: { a: { type: 'string' } } }),
  });
  return fc
    .record({
      system: fc.array(text, { maxLength: 1 }),
      messages: messages(wire),
      tools: fc.uniqueArray(tool, { selector: (one) => one.name, minLength: 1, maxLength: 3 }),
      toolChoice: fc.constantFrom('auto' as const, 'none' as const, 'required' as const),
      stop: wire === 'openai-responses' ? fc.constant<string[]>([]) : fc.uniqueArray(text, { maxLength: 3 }),
      maxTokens: fc.integer({ min: 1, max: 100_000 }),
      temperature: fc.constantFrom(0, 0.5, 1),
      topP: fc.constantFrom(0.1, 1),
    })
    .map(({ system, ...rest }) => ({
      ...rest,
      model: 'big',
      streamed: false,
      usageAsked: true,
      messages: [...system.map((one): NeutralMessage => ({ from: 'system', text: one })), ...rest.messages],
    }));
}

/** Half of what a sum of two may be. */
const tokens = fc.nat(modelAnswers.count.tokens / 2);
const usage = fc
  .record({ input: tokens, output: tokens, cacheRead: tokens, reasoning: tokens })
  .map((all) => ({ ...all, input: all.input + all.cacheRead, output: all.output + all.reasoning }));

function answer(wire: Wire): fc.Arbitrary<NeutralAnswer> {
  return fc
    .record({ parts: modelParts(wire), cut: fc.boolean(), usage, id: name, model: name })
    .map(({ cut, ...rest }) => {
      const parts = rest.parts.map((part, index) =>
        part.type === 'call' ? { ...part, id: `call_${index}` } : part,
      );
      const called = parts.some(({ type }) => type === 'call');
      return { ...rest, parts, stop: cut ? 'length' : called ? 'tools' : 'done' };
    });
}

/** Neighbours of one wire become one message on others, and the texts of a message one text. */
function joined(all: readonly NeutralMessage[]): NeutralMessage[] {
  const messages = all.reduce<NeutralMessage[]>((done, message) => {
    const last = done.at(-1);
    if (message.from === 'user' && last?.from === 'user') last.parts.push(...message.parts);
    else done.push(structuredClone(message));
    return done;
  }, []);
  for (const message of messages) {
    if (message.from !== 'user') continue;
    const texts = message.parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
    if (texts.length === message.parts.length) message.parts = [{ type: 'text', text: texts.join('\n') }];
  }
  return messages;
}

describe.each(allWires)('$name', ({ name: wire, translation }) => {
  const strict = () => new Losses('strict', 'big');

  test('a request reads back as it was written, and loses nothing', () => {
    fc.assert(
      fc.property(request(wire), (asked) => {
        const written = translation.writeRequest(asked, strict(), {
          model: 'big',
          maxOutputTokens: undefined,
        });
        const body = JSON.parse(JSON.stringify(written)) as JsonObject;
        const { usageAsked: _, ...read } = translation.readRequest(body, strict());
        const { usageAsked: __, model: ___, streamed: ____, ...expected } = asked;
        expect({ ...read, messages: joined(read.messages) }).toEqual({
          ...expected,
          messages: joined(asked.messages),
        });
      }),
    );
  });

  test('an answer reads back as it was written, whole and streamed', () => {
    fc.assert(
      fc.property(answer(wire), request(wire), (neutral, asked) => {
        const losses = strict();
        const about = { request: asked, at: 0, losses };
        const document = JSON.parse(JSON.stringify(translation.writeAnswer(neutral, about)));
        expect(wholeAnswer(wireTable[wire], JSON.stringify(document), callIds(), losses)).toEqual(neutral);

        const steps: NeutralEvent[] = [];
        const order = new StreamSteps(callIds(), (step) => steps.push(step));
        const reader = translation.read(order, losses);
        const writer = translation.writeStream(about, ({ data }) =>
          reader.event(typeof data === 'string' ? data : JSON.stringify(data)),
        );
        for (const step of eventsOf(neutral)) writer.take(step);
        if (!order.over) reader.end();
        expect(steps.filter(({ type }) => type !== 'start')).toEqual(
          [...eventsOf(neutral)].filter(({ type }) => type !== 'start'),
        );
        expect(losses.all()).toEqual([]);
      }),
    );
  });

  test('whatever is asked or answered is read, refused or called unreadable', () => {
    const known = [
      'model',
      'messages',
      'input',
      'content',
      'role',
      'type',
      'tools',
      'choices',
      'output',
      'parts',
      'contents',
    ];
    const anything = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom(null, 'user', 'assistant', 'text', 'message', 'tool_use', 'function_call', 1, true),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom(...known), tie('value'), { maxKeys: 4 }),
      ),
    })).value;
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...known), anything), (body) => {
        const attempts = [
          () => translation.readRequest(body, new Losses('lenient', 'big')),
          () => wholeAnswer(wireTable[wire], JSON.stringify(body), callIds(), new Losses('lenient', 'big')),
          () =>
            translation
              .read(new StreamSteps(callIds(), () => undefined), strict())
              .event(JSON.stringify(body)),
        ];
        for (const attempt of attempts) {
          try {
            attempt();
          } catch (error) {
            expect(error).toMatchObject({
              code: expect.stringMatching(/NOT_TRANSLATABLE|MODEL_ANSWER_UNREADABLE/),
            });
          }
        }
      }),
    );
  });
});
