import { resolvePrompt } from '../../agent/start-batch.ts';
import type { Client } from '../../client/client.ts';
import { BadFile, type FileIssue } from '../../suite/file-issues.ts';
import { type SuitePlan, startRequest } from '../../suite/plan.ts';
import type { Started } from './start-here.ts';

/**
 * Starts a batch at a service that runs its trials itself. The service gets the request, and nothing else.
 * Throws {@link BadFile} if that leaves out something that the suite asks for, unless `dropLocal` is set.
 */
export async function startThere(
  plan: SuitePlan,
  { client, uncarried, dropLocal }: { client: Client; uncarried: FileIssue[]; dropLocal: boolean },
  signal: AbortSignal,
): Promise<Started> {
  if (!dropLocal && uncarried.length > 0) {
    const remedy = 'remove it, or start with --drop-local to leave it out';
    const message = `a request to ${client.origin} cannot carry this; ${remedy}`;
    throw new BadFile(uncarried.map((issue) => ({ ...issue, message })));
  }
  const prompt = await resolvePrompt(plan, client, signal);
  const batch = await client.call('evals.start', startRequest(plan, prompt, 'platform'), { signal });
  return {
    kind: 'queued',
    batch,
    next: `${client.origin} runs it; \`offsite service runs CASE\` shows its results`,
  };
}
