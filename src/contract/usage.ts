import type { Usage } from './report.ts';

export const usageFields = [
  'inputTokens',
  'outputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'totalTokens',
  'costUsd',
] as const satisfies readonly (keyof Usage)[];

/**
 * The sum of each number. A number that one of the parts lacks is left out, and so is a sum that JSON cannot
 * express. Without parts, each sum is 0.
 */
export function sumOfUsage(parts: readonly Usage[]): Usage {
  const sums = usageFields.flatMap((field) => {
    const sum = parts.reduce((total, part) => total + (part[field] ?? Number.NaN), 0);
    return Number.isFinite(sum) ? [[field, sum]] : [];
  });
  return Object.fromEntries(sums);
}
