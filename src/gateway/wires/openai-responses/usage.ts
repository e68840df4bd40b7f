import type { NeutralUsage } from '../../translation/neutral-answer.ts';
import { object, tokens } from '../lenient.ts';
import { fields } from '../reply.ts';

const Usage = object({
  input_tokens: tokens,
  output_tokens: tokens,
  input_tokens_details: object({ cached_tokens: tokens, cache_write_tokens: tokens }),
  output_tokens_details: object({ reasoning_tokens: tokens }),
});

export function usageOf(usage: unknown): NeutralUsage {
  const { input_tokens_details: input, output_tokens_details: output, ...all } = Usage.parse(usage);
  return fields({
    input: all.input_tokens,
    output: all.output_tokens,
    cacheRead: input.cached_tokens,
    cacheWrite: input.cache_write_tokens,
    reasoning: output.reasoning_tokens,
  });
}
