import type { NeutralUsage } from '../../translation/neutral-answer.ts';
import { object, tokens } from '../lenient.ts';
import { fields } from '../reply.ts';

const Usage = object({
  promptTokenCount: tokens,
  candidatesTokenCount: tokens,
  thoughtsTokenCount: tokens,
  cachedContentTokenCount: tokens,
});

/** The wire counts thoughts apart from the rest of the output. */
export function usageOf(usage: unknown): NeutralUsage {
  const all = Usage.parse(usage);
  const { promptTokenCount: input, candidatesTokenCount: said, thoughtsTokenCount: reasoning } = all;
  // An answer without text has no count of it.
  const output =
    said === undefined && reasoning === undefined && input === undefined
      ? undefined
      : (said ?? 0) + (reasoning ?? 0);
  return fields({ input, output, cacheRead: all.cachedContentTokenCount, reasoning });
}
