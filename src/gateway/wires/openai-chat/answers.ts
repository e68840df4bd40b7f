import type { ChatRequest } from '../../chat/chat.ts';
import { stopNamed } from '../../translation/stops.ts';
import {
  type AnswerFacts,
  noFacts,
  noteFailure,
  type StreamReader,
  usageWithTotal,
} from '../answer-facts.ts';
import { anything, isObject, listOf, object, parsed, text, wholeText } from '../lenient.ts';
import { argumentsOf, idOf, plainText, type Reply, stoppedBy } from '../reply.ts';
import { failureIn } from './failure.ts';
import { stops } from './stops.ts';
import { usageIn, usageOf } from './usage.ts';

/** A whole answer, or a chunk of a stream. */
const Completion = object({ model: text, choices: anything });
const ChunkChoices = listOf(object({ finish_reason: text }));

export function readFacts(body: unknown): AnswerFacts {
  const { model, choices } = Completion.parse(body);
  const failure = isObject(body) ? failureIn(body) : undefined;
  return {
    usage: usageWithTotal(usageOf(isObject(body) ? usageIn(body) : undefined)),
    answeredBy: model,
    complete: Array.isArray(choices) && choices.length > 0,
    failure: failure?.message,
    overloaded: failure?.isOverload ?? false,
  };
}

/**
 * Most chunks hold one word of text and members that are null. Only chunks with more information are parsed.
 */
const worthParsing = /"usage"\s*:\s*\{|"error"|"finish_reason"\s*:\s*"/;
const finishing = /"finish_reason"\s*:\s*"/;

export function readStream(): StreamReader {
  const facts = noFacts();
  return {
    event(data) {
      if (data.trim() === '[DONE]') {
        facts.complete = true;
        return;
      }
      if (facts.answeredBy !== undefined && !worthParsing.test(data)) return;
      const chunk = parsed(data);
      if (!isObject(chunk)) return;
      const { model, choices } = Completion.parse(chunk);
      facts.answeredBy ??= model;
      const failure = failureIn(chunk);
      if (failure) noteFailure(facts, failure);
      // Not every server ends with [DONE].
      if (finishing.test(data) && isFinished(choices)) facts.complete = true;
      // Some servers repeat a growing usage in every chunk: the last one counts.
      const usage = usageIn(chunk);
      if (usage) facts.usage = usageWithTotal(usageOf(usage));
    },
    facts: () => facts,
  };
}

function isFinished(choices: unknown): boolean {
  return ChunkChoices.parse(choices).some(({ finish_reason }) => finish_reason !== undefined);
}

const Answer = object({ choices: listOf(anything) });
const Choice = object({ finish_reason: anything, message: anything });
const Message = object({
  content: anything,
  refusal: wholeText,
  tool_calls: listOf(object({ id: anything, function: object({ name: anything, arguments: anything }) })),
});

export function readReply(body: unknown, request: ChatRequest): Reply | undefined {
  const { finish_reason: reason, message } = Choice.parse(Answer.parse(body).choices[0]);
  if (message === undefined) return undefined;
  const { content, refusal, tool_calls } = Message.parse(message);
  const calls = tool_calls.map(({ id, function: called }, index) => ({
    id: idOf(id, request, index),
    name: String(called.name),
    arguments: argumentsOf(called.arguments),
  }));
  const stop = refusal ? 'refused' : stopNamed(stops, reason);
  return { text: plainText(content) || (refusal ?? ''), calls, stopped: stoppedBy(stop, calls) };
}
