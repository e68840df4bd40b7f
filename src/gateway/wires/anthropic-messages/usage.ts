import type { NeutralUsage } from '../../translation/neutral-answer.ts';
import { anything, object, tokens } from '../lenient.ts';
import { fields } from '../reply.ts';

const Usage = object({
  input_tokens: tokens,
  cache_read_input_tokens: tokens,
  cache_creation_input_tokens: tokens,
  output_tokens: tokens,
  output_tokens_details: object({ thinking_tokens: tokens }),
});

/** `input_tokens` excludes cached tokens, so the prompt is the sum of three numbers. */
export function usageOf(usage: unknown): NeutralUsage {
  const all = Usage.parse(usage);
  const { input_tokens: plain, cache_read_input_tokens: cacheRead } = all;
  const { cache_creation_input_tokens: cacheWrite } = all;
  return fields({
    input: plain === undefined ? undefined : plain + (cacheRead ?? 0) + (cacheWrite ?? 0),
    output: all.output_tokens,
    cacheRead,
    cacheWrite,
    reasoning: all.output_tokens_details.thinking_tokens,
  });
}

const Counts = object({
  input_tokens: anything,
  cache_read_input_tokens: anything,
  cache_creation_input_tokens: anything,
  output_tokens: anything,
  output_tokens_details: anything,
});

/** The counts that an event has; a count that is null says nothing new. */
export function countsIn(usage: unknown): Partial<ReturnType<typeof Counts.parse>> {
  return Object.fromEntries(Object.entries(Counts.parse(usage)).filter(([, value]) => value != null));
}
