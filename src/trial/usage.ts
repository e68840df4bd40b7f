import type { Usage } from '../contract/report.ts';
import { sumOfUsage } from '../contract/usage.ts';
import type { ModelAccount } from '../gateway/gateway.ts';

/**
 * The sum of what the agent's models used. A number that is not known for each of them is left out. Without a
 * model it is 0.
 */
export function agentUsage({ usage }: Pick<ModelAccount, 'usage'>): Usage {
  return sumOfUsage(usage.filter(({ role }) => role === 'agent').map((part) => part.usage));
}
