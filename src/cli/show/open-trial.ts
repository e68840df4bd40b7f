import { OffsiteError } from '../../base/offsite-error.ts';
import { auditOf } from '../../ledger/audits.ts';
import type { StoredBatch } from '../../ledger/batches.ts';
import { lastBatch, listRuns, listTrials, shortBatchIds } from '../../ledger/find.ts';
import { findTarget, labelOf, type Target } from '../../ledger/find-target.ts';
import { laterGradings } from '../../ledger/later-gradings.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { recordOfTrial } from '../output/stored-batch.ts';
import { artifactsOf, attemptsOf, storedBlob } from '../output/trial-details.ts';
import type { ShownTrial } from './story.ts';
import { wordsFor } from './words.ts';

/** Finds a finished trial. Throws as {@link findTarget} and {@link trialOf} do. */
export function openTrial(ledger: Ledger, reference: string): ShownTrial {
  return trialOf(ledger, findTarget(ledger.records, reference));
}

/** A trial, or the only one of a batch or a run. Throws `TRIAL_NEEDED`, and as {@link shownTrial} does. */
export function trialOf(ledger: Ledger, target: Target): ShownTrial {
  if (target.kind === 'trial') return shownTrial(ledger, target);
  const { batch } = target;
  const runs = listRuns(ledger.records, batch.key);
  const trials = listTrials(ledger.records, batch.key);
  const [trial, ...others] =
    target.kind === 'run' ? trials.filter(({ run }) => run === target.run.key) : trials;
  const run = runs.find(({ key }) => key === trial?.run);
  if (trial && run && others.length === 0) return shownTrial(ledger, { kind: 'trial', batch, run, trial });
  throw trialNeeded(target, 'this is about one trial');
}

export function trialNeeded({ kind }: Target, why: string): OffsiteError {
  return new OffsiteError(`${why}, and the name is that of a ${kind}`, {
    code: 'TRIAL_NEEDED',
    kind: 'input',
    hint: 'Name a trial: case/variant#ordinal. `offsite show` lists them.',
  });
}

/** Throws if the trial has no result yet, or if its record cannot be read. */
export function shownTrial(
  ledger: Ledger,
  { batch, run, trial }: Extract<Target, { kind: 'trial' }>,
): ShownTrial {
  const { result, state, ordinal } = trial;
  if (result === undefined) {
    throw new OffsiteError(`${labelOf(run)}#${ordinal} has no result yet: it is ${state}`, {
      code: 'TRIAL_UNFINISHED',
      kind: 'input',
      hint: 'Look again when it is finished. `offsite resume` continues a batch that was stopped.',
    });
  }
  const record = recordOfTrial(ledger, trial);
  const short = isLast(ledger, batch) ? undefined : shortBatchIds(ledger.records)(batch.id);
  return {
    ...{ batch, run, trial, record },
    details: {
      artifacts: artifactsOf(ledger, record),
      attempts: attemptsOf(ledger, trial.key),
      record: storedBlob(ledger, result),
    },
    gradings: laterGradings(ledger, trial.key, record),
    audit: auditOf(ledger.records, trial.key),
    words: wordsFor(trial, short),
    read: (sha256) => ledger.blobs.tryReadClean(sha256)?.toString('utf8'),
  };
}

export function isLast({ records }: Ledger, { key }: StoredBatch): boolean {
  return lastBatch(records).key === key;
}
