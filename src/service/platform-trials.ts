import type { Clock } from '../base/clock.ts';
import { OffsiteError } from '../base/offsite-error.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { reportOf } from '../trial/report.ts';
import { trialIdentifier } from './identifiers.ts';
import type { PlatformTrials } from './platform.ts';
import { modelCosts } from './record/costs.ts';
import { type StoredTrial, storedTrial } from './record/stored-trial.ts';
import { withJudgments } from './record/stored-validations.ts';
import type { CompletedFacts } from './store/platform-runs.ts';
import type { Stores } from './store/stores.ts';
import type { Writer } from './store/writer.ts';

/** @param inProgress gets the identifiers of the trials that run */
export function createPlatformTrials(
  stores: Pick<Stores, 'platform' | 'trials'>,
  writer: Writer,
  clock: Clock,
  inProgress: Set<string>,
): PlatformTrials {
  const { platform, trials } = stores;
  return {
    openRuns: (known = new Set()) => platform.openRuns(known),
    complete: (runId, ordinal, result) =>
      writer.write(() => {
        const run = platform.find(runId);
        if (!run || !Number.isInteger(ordinal) || ordinal < 0 || ordinal >= run.trials) {
          throw new OffsiteError(`there is no trial ${ordinal} of a platform run ${runId}`, {
            code: 'RUN_UNKNOWN',
            kind: 'input',
          });
        }
        if (trials.read(run.key, ordinal)) return 'already';
        const id = trialIdentifier(runId, ordinal);
        const { record, leftovers, summary, facts } = completedTrial(
          id,
          result,
          { ...run, ordinal },
          clock.now(),
        );
        trials.add({
          run: run.key,
          ordinal,
          summary,
          record: JSON.stringify(record),
          leftovers: JSON.stringify(leftovers),
        });
        platform.complete(run.key, ordinal, facts);
        inProgress.delete(id);
        if (trials.count(run.key) === run.trials) platform.close(run.key);
        return 'recorded';
      }),
    show(runId, ordinal, status) {
      const id = trialIdentifier(runId, ordinal);
      if (status === 'running') inProgress.add(id);
      else inProgress.delete(id);
    },
  };
}

interface CompletedTrial extends StoredTrial {
  facts: CompletedFacts;
}

/**
 * A trial that the platform ran, as it is kept: what a report of it says, and everything for which a report
 * has no field. `now` in epoch milliseconds.
 */
function completedTrial(
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
