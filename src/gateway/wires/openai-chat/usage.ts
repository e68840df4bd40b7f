import type { NeutralUsage } from '../../translation/neutral-answer.ts';
import { isObject, type JsonObject, member, object, objectsOf, tokens } from '../lenient.ts';
import { fields } from '../reply.ts';

/** Servers name cache details as OpenAI, DeepSeek and OpenRouter do, and counts as any of OpenAI's APIs. */
const Usage = object({
  prompt_tokens: tokens,
  completion_tokens: tokens,
  input_tokens: tokens,
  output_tokens: tokens,
  prompt_tokens_details: object({ cached_tokens: tokens, cache_write_tokens: tokens }),
  prompt_cache_hit_tokens: tokens,
  completion_tokens_details: object({ reasoning_tokens: tokens }),
});

/** `prompt_tokens` include cached ones and `completion_tokens` include reasoning. */
export function usageOf(usage: unknown): NeutralUsage {
  const { prompt_tokens_details: prompt, completion_tokens_details: completion, ...all } = Usage.parse(usage);
  return fields({
    input: all.prompt_tokens ?? all.input_tokens,
    output: all.completion_tokens ?? all.output_tokens,
    cacheRead: prompt.cached_tokens ?? all.prompt_cache_hit_tokens,
    cacheWrite: prompt.cache_write_tokens,
    reasoning: completion.reasoning_tokens,
  });
}

/** The usage of a chunk: beside its choices, in one of them, or where Groq puts it. */
export function usageIn(chunk: JsonObject): JsonObject | undefined {
  const inChoices = objectsOf(chunk.choices).map((choice) => choice.usage);
  return [chunk.usage, ...inChoices, member(chunk.x_groq, 'usage')].find(isObject);
}
