import type { Usage } from '../contract/report.ts';
import { sumOfUsage } from '../contract/usage.ts';
import type { ModelAccount } from '../gateway/gateway.ts';

/**
 * What the agent's models used together. A number that is not known of each of them is left out; with no
 * model it is 0.
 */
export function agentUsage({ usage }: Pick<ModelAccount, 'usage'>): Usage {
  return sumOfUsage(usage.filter(({ role }) => role === 'agent').map((part) => part.usage));
}
