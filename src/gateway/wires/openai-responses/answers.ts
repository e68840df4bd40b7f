import type { ChatRequest } from '../../chat/chat.ts';
import { stopNamed } from '../../translation/stops.ts';
import {
  type AnswerFacts,
  noFacts,
  noteFailure,
  type StreamReader,
  usageWithTotal,
} from '../answer-facts.ts';
import { anything, isObject, list, member, object, parsed, text } from '../lenient.ts';
import { readError, readErrorBody } from '../model-error.ts';
import { argumentsOf, idOf, plainText, type Reply, stoppedBy } from '../reply.ts';
import { stops } from './stops.ts';
import { usageOf } from './usage.ts';

const Facts = object({ status: text, model: text, error: anything, usage: anything });
const Event = object({ type: anything, response: anything });

export function readFacts(body: unknown): AnswerFacts {
  const { status, model, error, usage } = Facts.parse(body);
  const { message, isOverload: overloaded } = readError(error);
  return {
    usage: usageWithTotal(usageOf(usage)),
    answeredBy: model,
    complete: status === 'completed' || status === 'incomplete',
    failure: message ?? (status === 'failed' ? 'it failed' : undefined),
    overloaded,
  };
}

/**
 * Matches the events that carry a whole response, and the one that carries an error. Others are not parsed.
 */
const worthParsing = /"type"\s*:\s*"(response\.(created|completed|incomplete|failed)|error)"/;

export function readStream(): StreamReader {
  let facts = noFacts();
  return {
    event(data) {
      if (!worthParsing.test(data)) return;
      const event = parsed(data);
      const { type, response } = Event.parse(event);
      if (type === 'error') return noteFailure(facts, readErrorBody(event));
      // The model's text may look like an event, but only an event has a response.
      if (isObject(response)) facts = readFacts(response);
    },
    facts: () => facts,
  };
}

const Response = object({ output: anything, incomplete_details: object({ reason: anything }) });
const Item = object({
  type: anything,
  call_id: anything,
  name: anything,
  arguments: anything,
  content: anything,
});

export function readReply(body: unknown, request: ChatRequest): Reply | undefined {
  const { output, incomplete_details } = Response.parse(body);
  if (!Array.isArray(output)) return undefined;
  const items = output.map((item) => Item.parse(item));
  const calls = items
    .filter(({ type }) => type === 'function_call')
    .map((item, index) => ({
      id: idOf(item.call_id, request, index),
      name: String(item.name),
      arguments: argumentsOf(item.arguments),
    }));
  const contents = items.filter(({ type }) => type === 'message').map(({ content }) => content);
  const refusals = contents
    .flatMap(list)
    .map((part) => member(part, 'refusal'))
    .filter((refusal) => typeof refusal === 'string');
  const stop = refusals.length > 0 ? 'refused' : stopNamed(stops, incomplete_details.reason);
  const text = contents.map(plainText).join('') || refusals.join('\n');
  return { text, calls, stopped: stoppedBy(stop, calls) };
}
