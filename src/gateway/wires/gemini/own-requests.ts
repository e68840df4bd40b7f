import type { ChatRequest } from '../../chat/chat.ts';
import type { ScriptedAnswer } from '../../scripted/answer.ts';
import { Losses } from '../../translation/losses.ts';
import { eventsOf, type NeutralAnswer } from '../../translation/neutral-answer.ts';
import type { NeutralMessage, NeutralRequest } from '../../translation/neutral-request.ts';
import { isObject, type JsonObject, parsed } from '../lenient.ts';
import { fields } from '../reply.ts';
import type { StreamForm } from '../wire-descriptor.ts';
import { piecesOf, type WireEvent } from '../wire-event.ts';
import { writeAnswer as writeNeutral } from './translation/write-answer.ts';
import { writeRequest } from './translation/write-request.ts';
import { writeStream as writeNeutralStream } from './translation/write-stream.ts';

/** Requests and answers of this process, by way of the neutral form. */

const losses = () => new Losses('lenient', 'gemini');

export function write(model: string, request: ChatRequest): JsonObject {
  const { system, temperature, seed, maxTokens, schema } = request;
  const neutral: NeutralRequest = {
    ...{ model, streamed: false, usageAsked: true, stop: [] },
    messages: [
      ...(system === undefined ? [] : [{ from: 'system' as const, text: system }]),
      ...request.messages.map(messageOf),
    ],
    tools: request.tools?.map((tool) => ({ ...tool })) ?? [],
    ...fields({
      temperature,
      seed,
      maxTokens,
      format: schema && { schema: schema.schema, name: schema.name },
    }),
  };
  return writeRequest(neutral, losses(), { model, maxOutputTokens: undefined });
}

function messageOf(message: ChatRequest['messages'][number]): NeutralMessage {
  const text = { type: 'text' as const, text: message.text };
  switch (message.from) {
    case 'user':
      return { from: 'user', parts: [text] };
    case 'tool':
      return { from: 'tool', callId: message.callId, parts: [text], failed: message.failed };
    case 'model': {
      const calls = message.calls.map(({ id, name, arguments: given }) => ({
        ...{ type: 'call' as const, id, name },
        arguments: JSON.stringify(given),
      }));
      return { from: 'model', parts: [...(message.text === '' ? [] : [text]), ...calls] };
    }
  }
}

function neutralOf({ id, model, text, calls, stop, usage }: ScriptedAnswer): NeutralAnswer {
  const isRefusal = stop === 'refusal';
  return {
    id,
    model,
    parts: [
      ...(text === '' ? [] : [{ type: 'text' as const, text }]),
      ...calls.map((call) => ({
        type: 'call' as const,
        id: call.id,
        name: call.tool,
        arguments: objectText(call.arguments),
      })),
    ],
    stop: isRefusal ? 'refused' : stop === 'length' ? 'length' : calls.length > 0 ? 'tools' : 'done',
    usage: usage
      ? fields({
          input: usage.input,
          output: usage.output,
          cacheRead: usage.cacheRead,
          reasoning: usage.reasoning,
        })
      : {},
  };
}

/** The wire cannot carry arguments that are not a JSON object. */
function objectText(given: string): string {
  const value = parsed(given);
  return isObject(value) ? given : JSON.stringify({ value: value ?? given });
}

function asked(model: string, at: number) {
  const request: NeutralRequest = {
    model,
    streamed: true,
    usageAsked: true,
    messages: [],
    tools: [],
    stop: [],
  };
  return { request, at, losses: losses() };
}

export function writeAnswer(answer: ScriptedAnswer, at: number): JsonObject {
  return writeNeutral(neutralOf(answer), asked(answer.model, at));
}

export function* writeStream(answer: ScriptedAnswer, { characters, at }: StreamForm): Generator<WireEvent> {
  let events: WireEvent[] = [];
  const writer = writeNeutralStream(asked(answer.model, at), (event) => events.push(event));
  for (const step of eventsOf(neutralOf(answer))) {
    const isText = step.type === 'text';
    const pieces = isText ? piecesOf(step.text, characters).map((text) => ({ ...step, text })) : [step];
    for (const piece of pieces) writer.take(piece);
    yield* events.map((event) => ({ ...event, isText }));
    events = [];
  }
}
