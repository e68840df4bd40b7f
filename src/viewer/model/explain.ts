import type { Cause } from '../../record/cause.ts';
import { failuresOf } from '../../record/failures.ts';
import type { TrialListing } from '../../record/listing.ts';
import type { TrialRecord } from '../../record/trial-record.ts';

/** Sentences that say whose fault a cause is. */
const faults: Record<Cause['kind'], string> = {
  task: "The case's own scripts failed. This is not the agent's fault.",
  agent: "The agent did not finish its work. This is the agent's fault.",
  harness: "The harness failed before its model answered. This is not the agent's fault.",
  model: "The model or its provider failed. This is not the agent's fault.",
  infrastructure: "This machine or its engine failed. This is not the agent's fault.",
  replay: "The recording has no answer for a request. This is not the agent's fault.",
  grading: "The agent finished, but grading gave no verdict. This is not the agent's fault.",
  unknown: 'It is not known whose fault this is.',
};

/** Whose fault a trial's verdict is, and why, each reason on a line, the clearest first. */
export function explain(record: TrialRecord): { fault?: string; reasons: string[] } {
  const { verdict, cause } = record;
  if (verdict === 'passed') return { reasons: [] };
  const reasons = [...(cause ? [`${cause.phase}: ${cause.message}`] : []), ...failuresOf(record)];
  return { fault: cause ? faults[cause.kind] : uncaused[verdict], reasons };
}

/** Sentences about a trial without a cause. */
const uncaused = {
  void: 'Nothing said whether the work is right, so there is no verdict.',
  failed: 'The agent finished, and its work did not pass the checks.',
};

/** The reason of a trial in one line; undefined for one that passed. */
export function reasonOf(
  verdict: TrialRecord['verdict'],
  { cause, failure }: TrialListing,
): string | undefined {
  if (verdict === 'passed') return undefined;
  return cause ? `${cause.phase}: ${cause.message}` : (failure ?? uncaused[verdict]);
}
