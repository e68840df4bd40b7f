import type { Usage } from '../contract/report.ts';
import type { Prices } from '../suite/model-config.ts';

/**
 * USD for one answer; undefined where a price or a number of tokens is not known. Input tokens include the
 * cached ones, which are reckoned at their own price where there is one. A wire that does not tell of a cache
 * used none that its prices know of.
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
