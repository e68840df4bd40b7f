import type { ModelAccount } from '../gateway/gateway.ts';
import type { TrialResult } from '../record/trial-record.ts';
import { agentUsage } from '../record/usage.ts';

const compared = ['inputTokens', 'outputTokens'] as const;

/**
 * One line for each count of the harness that differs from ours: its token counts from the gateway's, its
 * command count from the commands in its stream.
 */
export function disagreements(
  { harnessCounts, trajectory }: Partial<TrialResult>,
  account: ModelAccount,
): string[] {
  const usage = agentUsage(account);
  const tokens = compared.flatMap((field) => {
    const said = harnessCounts?.usage?.[field];
    const seen = usage[field];
    return said === undefined || seen === undefined || said === seen
      ? []
      : [`the harness counted ${said} ${words[field]}, the gateway ${seen}`];
  });
  const said = harnessCounts?.commands;
  const seen = trajectory?.length;
  const commands =
    said === undefined || seen === undefined || said === seen
      ? []
      : [`the harness counted ${said} commands, its stream showed ${seen}`];
  return [...tokens, ...commands];
}

const words = { inputTokens: 'input tokens', outputTokens: 'output tokens' } as const;
