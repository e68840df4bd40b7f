import type { Usage } from '../contract/report.ts';
import type { Prices } from '../suite/model-config.ts';

/**
 * USD for one answer; undefined if a price or a number of tokens is unknown. Input tokens include cached
 * ones, which have a separate price if one is set. If a wire reports no cached tokens, none are priced.
 */
export function costOf(usage: Usage, prices: Prices | undefined): number | undefined {
  const { inputTokens, outputTokens, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage;
  if (!prices || inputTokens === undefined || outputTokens === undefined) return undefined;
  const plain = Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens);
  const millionths =
    plain * prices.input +
    cacheReadTokens * (prices.cacheRead ?? prices.input) +
    cacheWriteTokens * (prices.cacheWrite ?? prices.input) +
    outputTokens * prices.output;
  return millionths / 1_000_000;
}
