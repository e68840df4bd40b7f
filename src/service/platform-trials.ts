import type { Clock } from '../clock.ts';
import { OffsiteError } from '../offsite-error.ts';
import { trialIdentifier } from './identifiers.ts';
import type { PlatformTrials } from './platform.ts';
import { completedTrial } from './record/completed-trial.ts';
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
        if (trials.count(run.key) === run.trials) platform.close(run.key);
        return 'recorded';
      }),
    running(runId, ordinal) {
      const id = trialIdentifier(runId, ordinal);
      inProgress.add(id);
      return { [Symbol.dispose]: () => inProgress.delete(id) };
    },
  };
}
