import { proxyActivities } from '@temporalio/workflow';
import type { FleetActivities, TrialOrder, TrialSummary } from './messages.ts';
import { trialName } from './messages.ts';

/** Tries of one trial. Each failed one took a worker with it, or found that the worker cannot run it. */
const tries = 50;

export interface TrialSettings {
  /** The task queue of workers that have what the trial needs. */
  queue: string;
  heartbeatMs: number;
  /** From 1, the most urgent, to 5. */
  priority: number;
}

/** Runs a trial on a worker, as an activity with the id `run/ordinal`. Rejects if no worker could run it. */
export function runTrial(
  order: TrialOrder,
  { queue, heartbeatMs, priority }: TrialSettings,
): Promise<TrialSummary> {
  const { offsiteTrial } = proxyActivities<FleetActivities>({
    activityId: trialName(order),
    taskQueue: queue,
    heartbeatTimeout: heartbeatMs,
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    // A trial ends by the timeouts of its own phases; this is for what nobody thought of.
    startToCloseTimeout: '7 days',
    retry: { initialInterval: '1 second', maximumInterval: '1 minute', maximumAttempts: tries },
    priority: { priorityKey: priority, fairnessKey: order.batch.slice(0, 64) },
  });
  return offsiteTrial(order);
}
