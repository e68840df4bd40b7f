import type { ChatRequest } from '../../chat/chat.ts';
import { stopNamed } from '../../translation/stops.ts';
import {
  type AnswerFacts,
  noFacts,
  noteFailure,
  type StreamReader,
  usageWithTotal,
} from '../answer-facts.ts';
import { anything, object, parsed, text } from '../lenient.ts';
import { readError } from '../model-error.ts';
import { argumentsOf, idOf, plainText, type Reply, stoppedBy } from '../reply.ts';
import { stops } from './stops.ts';
import { countsIn, usageOf } from './usage.ts';

const Message = object({ type: anything, model: text, error: anything, usage: anything });
const Event = object({
  type: anything,
  message: object({ model: text, usage: anything }),
  delta: object({ stop_reason: text }),
  error: anything,
  usage: anything,
});

export function readFacts(body: unknown): AnswerFacts {
  const { type, model, error, usage } = Message.parse(body);
  const { message: failure, isOverload: overloaded } = readError(error);
  return {
    usage: usageWithTotal(usageOf(usage)),
    answeredBy: model,
    complete: type === 'message',
    failure,
    overloaded,
  };
}

const worthParsing = /"type"\s*:\s*"(message_start|message_delta|message_stop|error)"/;

export function readStream(): StreamReader {
  const facts = noFacts();
  const known: Record<string, unknown> = {};
  return {
    event(data) {
      if (!worthParsing.test(data)) return;
      const { type, message, delta, error, usage } = Event.parse(parsed(data));
      if (type === 'error') noteFailure(facts, readError(error));
      if (type === 'message_stop') facts.complete = true;
      if (type === 'message_start') {
        facts.answeredBy ??= message.model;
        // Its output tokens cover only the beginning of the answer.
        const { output_tokens, ...prompt } = { output_tokens: 0, ...countsIn(message.usage) };
        Object.assign(known, prompt);
      }
      // Counts of a delta cover the whole message so far; counts that are missing or null stay unchanged.
      if (type === 'message_delta') Object.assign(known, countsIn(usage));
      // Not every server sends a message_stop.
      if (type === 'message_delta' && delta.stop_reason !== undefined) facts.complete = true;
      facts.usage = usageWithTotal(usageOf(known));
    },
    facts: () => facts,
  };
}

const Answer = object({ content: anything, stop_reason: anything });
const Block = object({ type: anything, id: anything, name: anything, input: anything });

export function readReply(body: unknown, request: ChatRequest): Reply | undefined {
  const { content, stop_reason: reason } = Answer.parse(body);
  if (!Array.isArray(content)) return undefined;
  const used = content.map((block) => Block.parse(block)).filter(({ type }) => type === 'tool_use');
  const answer = used.find(({ name }) => request.schema && name === request.schema.name);
  const calls = used
    .filter((block) => block !== answer)
    .map(({ id, name, input }, index) => ({
      id: idOf(id, request, index),
      name: String(name),
      arguments: argumentsOf(input),
    }));
  const text = answer ? JSON.stringify(answer.input) : plainText(content);
  return { text, calls, stopped: stoppedBy(stopNamed(stops, reason), calls) };
}
