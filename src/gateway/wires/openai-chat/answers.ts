import type { ChatRequest } from '../../chat/chat.ts';
import type { NeutralUsage } from '../../translation/neutral-answer.ts';
import { type Stops, stopNamed } from '../../translation/stops.ts';
import {
  type AnswerFacts,
  noFacts,
  noteFailure,
  type StreamReader,
  usageWithTotal,
} from '../answer-facts.ts';
import { anything, isObject, listOf, object, parsed, text, tokens, wholeText } from '../lenient.ts';
import { readError } from '../model-error.ts';
import { argumentsOf, fields, idOf, plainText, type Reply, stoppedBy } from '../reply.ts';

export const stops: Stops = {
  stop: 'done',
  eos: 'done',
  tool_calls: 'tools',
  function_call: 'tools',
  length: 'length',
  content_filter: 'refused',
};

/** A whole answer, or a chunk of a stream. */
const Completion = object({ model: text, choices: anything, error: anything, usage: anything });
const ChunkChoices = listOf(object({ finish_reason: text }));

export function readFacts(body: unknown): AnswerFacts {
  const { model, choices, error, usage } = Completion.parse(body);
  const { message: failure, isOverload: overloaded } = readError(error);
  return {
    usage: usageWithTotal(usageOf(usage)),
    answeredBy: model,
    complete: Array.isArray(choices),
    failure,
    overloaded,
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
      const { model, choices, error, usage } = Completion.parse(parsed(data));
      facts.answeredBy ??= model;
      const failure = readError(error);
      if (failure.message !== undefined) noteFailure(facts, failure);
      // Not every server ends with [DONE].
      if (finishing.test(data) && isFinished(choices)) facts.complete = true;
      // Some servers repeat a growing usage in every chunk: the last one counts.
      if (isObject(usage)) facts.usage = usageWithTotal(usageOf(usage));
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

/** Servers name cache details as OpenAI, DeepSeek and OpenRouter do. */
const Usage = object({
  prompt_tokens: tokens,
  completion_tokens: tokens,
  prompt_tokens_details: object({ cached_tokens: tokens, cache_write_tokens: tokens }),
  prompt_cache_hit_tokens: tokens,
  completion_tokens_details: object({ reasoning_tokens: tokens }),
});

/** `prompt_tokens` include cached ones and `completion_tokens` include reasoning. */
export function usageOf(usage: unknown): NeutralUsage {
  const { prompt_tokens_details: prompt, completion_tokens_details: completion, ...all } = Usage.parse(usage);
  return fields({
    input: all.prompt_tokens,
    output: all.completion_tokens,
    cacheRead: prompt.cached_tokens ?? all.prompt_cache_hit_tokens,
    cacheWrite: prompt.cache_write_tokens,
    reasoning: completion.reasoning_tokens,
  });
}
