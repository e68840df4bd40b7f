import type { StreamedAnswer } from './streamed-answer.ts';

/**
 * Tokens per second of one answer after its first token, or of the whole answer if it arrived at once.
 * Undefined if the answer is too short to measure.
 */
export function tokensPerSecond(answer: StreamedAnswer): number | undefined {
  const { firstTokenMs, lastTokenMs, totalMs, outputTokens, arrivals } = answer;
  if (firstTokenMs === undefined || lastTokenMs === undefined || outputTokens < 2) return undefined;
  if (arrivals <= 1) return outputTokens / (totalMs / 1000);
  return (outputTokens - 1) / ((lastTokenMs - firstTokenMs) / 1000);
}

export function median(values: readonly number[]): number | undefined {
  return percentile(values, 0.5);
}

/** The smallest value that is at least as large as this share of the values. Undefined without values. */
export function percentile(values: readonly number[], share: number): number | undefined {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}
