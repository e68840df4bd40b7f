import type { TrialRecord } from '../../record/trial-record.ts';
import { reportOf } from '../../trial/report.ts';
import type { CompletedFacts } from '../store/platform-runs.ts';
import { modelCosts } from './costs.ts';
import { type StoredTrial, storedTrial } from './stored-trial.ts';
import { withJudgments } from './stored-validations.ts';

export interface CompletedTrial extends StoredTrial {
  facts: CompletedFacts;
}

/**
 * A trial that the platform ran, as it is kept: what a report of it says, and everything for which a report
 * has no field. `now` in epoch milliseconds.
 */
export function completedTrial(
  id: string,
  result: TrialRecord,
  subject: { caseName: string; taskIndex: number; ordinal: number; model: string },
  now: number,
): CompletedTrial {
  const { record, summary, leftovers } = storedTrial(
    id,
    reportOf(result, { ...subject, sessionId: id }),
    now,
  );
  const costs = modelCosts(result);
  return {
    summary,
    leftovers,
    facts: {
      harnessVersion: result.harnessVersion,
      profileVersion: result.subject?.profileVersion,
      costs,
    },
    record: {
      ...record,
      status: summary.verdict === 'void' ? 'voided' : 'completed',
      filesChanged: result.filesChanged,
      costs,
      validations: withJudgments(result.validations ?? [], result.judgments ?? []),
    },
  };
}
