import type { Usage } from '../contract/report.ts';
import type { ModelAccount } from '../gateway/gateway.ts';

export const usageFields = [
  'inputTokens',
  'outputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'totalTokens',
  'costUsd',
] as const;

/** What the agent's models used together. A number that is not known of each of them is left out; nothing asked is 0. */
export function agentUsage({ usage }: Pick<ModelAccount, 'usage'>): Usage {
  const parts = usage.filter(({ role }) => role === 'agent').map((part) => part.usage);
  const sums = usageFields.map((field) => {
    const values = parts.map((part) => part[field]);
    return [
      field,
      values.includes(undefined) ? undefined : values.reduce((sum = 0, value = 0) => sum + value, 0),
    ];
  });
  return Object.fromEntries(sums.filter(([, value]) => value !== undefined));
}
