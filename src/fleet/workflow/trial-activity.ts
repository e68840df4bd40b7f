import { ApplicationFailure, proxyActivities } from '@temporalio/workflow';
import type { FleetActivities, TrialOrder, TrialSummary } from './messages.ts';
import { trialName } from './messages.ts';

/** Tries of one trial. In each failed one, the worker was lost or could not run the trial. */
const tries = 50;

export interface TrialSettings {
  /** The task queue of workers that have what the trial needs. */
  queue: string;
  heartbeatMs: number;
  /** From 1, the most urgent, to 5. */
  priority: number;
  /** Batches of one group share what one batch would get. Without it, the trial's batch is the group. */
  group?: string | undefined;
}

/**
 * Runs a trial on a worker, as an activity with the id `run/ordinal`. Rejects if no worker could run it, or
 * if somebody completed it with something that is not a summary.
 */
export async function runTrial(
  order: TrialOrder,
  { queue, heartbeatMs, priority, group = order.batch }: TrialSettings,
): Promise<TrialSummary> {
  const { offsiteTrial } = proxyActivities<FleetActivities>({
    activityId: trialName(order),
    taskQueue: queue,
    heartbeatTimeout: heartbeatMs,
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    // A trial ends by the timeouts of its own phases. This limit is for unforeseen cases.
    startToCloseTimeout: '7 days',
    retry: { initialInterval: '1 second', maximumInterval: '1 minute', maximumAttempts: tries },
    priority: { priorityKey: priority, fairnessKey: group.slice(0, 64) },
  });
  return summaryOf(await offsiteTrial(order));
}

const verdicts: readonly string[] = ['passed', 'failed', 'void', 'elsewhere'];

/**
 * Checks a summary, because a person who completes a trial by hand can write anything. Throws if it has no
 * verdict. Negative numbers count as 0, so that they never lower a sum.
 */
function summaryOf(given: TrialSummary): TrialSummary {
  if (!verdicts.includes(given?.verdict))
    throw ApplicationFailure.nonRetryable('the trial was completed without a verdict', 'NoVerdict');
  const atLeastZero = (value: unknown) =>
    typeof value === 'number' && Number.isFinite(value) ? Math.max(0, value) : undefined;
  return { ...given, tokens: atLeastZero(given.tokens), usd: atLeastZero(given.usd) };
}
