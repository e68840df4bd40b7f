import type { RunRecord } from '../../contract/record.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { QueuedTrial } from '../../ledger/queue.ts';
import { noExtras, type PlannedVariant } from '../../suite/plan.ts';
import type { TrialSpec } from '../../trial/spec.ts';
import { ownTrialSpec } from '../trial-spec.ts';

/**
 * What to do in a trial of a run that was found by listing: the texts of its setup, which the service has expanded already; whatever
 * validations the validator declares; everything captured. Throws `SETUP_MISSING`, `SETUP_UNREADABLE` and
 * `SOURCE_UNKNOWN`.
 *
 * @param judges models that its validator may ask
 */
export function foundTrialSpec(
  trial: QueuedTrial,
  variant: PlannedVariant,
  judges: readonly string[],
  ledger: Ledger,
): TrialSpec {
  const setup =
    trial.setup === undefined ? undefined : (ledger.blobs.readJson(trial.setup) as RunRecord['setup']);
  // A case without texts of its own: what was pulled differs from all of them, so that it stays as it is.
  const bare = { request: { id: trial.caseId, name: trial.caseName }, local: noExtras };
  return ownTrialSpec(
    {
      record: { id: trial.runId, setup },
      taskIndex: 0,
      case: bare,
      variant,
      prompt: '',
      batchId: trial.batchId,
      judges: [...judges],
    },
    trial.ordinal,
  );
}
