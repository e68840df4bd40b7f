import type { Usage } from './report.ts';

export const usageFields = [
  'inputTokens',
  'outputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'totalTokens',
  'costUsd',
] as const satisfies readonly (keyof Usage)[];

/** The sum of each number. A number that one of the parts lacks is left out. Without parts, each sum is 0. */
export function sumOfUsage(parts: readonly Usage[]): Usage {
  const sums = usageFields.flatMap((field) => {
    const known = parts.map((part) => part[field]).filter((value) => value !== undefined);
    return known.length < parts.length ? [] : [[field, known.reduce((sum, value) => sum + value, 0)]];
  });
  return Object.fromEntries(sums);
}
