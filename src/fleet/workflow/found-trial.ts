import { ApplicationFailure, defineQuery, setHandler } from '@temporalio/workflow';
import { queries, type TrialOrder, type TrialSummary, trialName } from './messages.ts';
import { runTrial, type TrialSettings } from './trial-activity.ts';

/**
 * Runs one trial of a run that the poll found. It fails if another agent outside the fleet has the trial, or
 * no worker could run it: only then does Temporal let the poll start it again.
 */
export async function offsiteFoundTrial(order: TrialOrder, settings: TrialSettings): Promise<TrialSummary> {
  let known: TrialSummary | null = null;
  setHandler(defineQuery<TrialSummary | null, [string]>(queries.outcome), (trial) =>
    trial === trialName(order) ? known : null,
  );
  known = await runTrial(order, settings);
  if (known.verdict !== 'elsewhere') return known;
  throw ApplicationFailure.nonRetryable('another agent outside the fleet has the trial', 'Elsewhere');
}
