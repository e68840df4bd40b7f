import { inputError, type OffsiteError } from '../../base/offsite-error.ts';
import { auditOf } from '../../ledger/audits.ts';
import type { StoredBatch } from '../../ledger/batches.ts';
import { lastBatch, listRuns, listTrials, shortBatchIds } from '../../ledger/find.ts';
import { findTarget, labelOf, type Target } from '../../ledger/find-target.ts';
import { laterGradings } from '../../ledger/later-gradings.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { ours, text } from '../../text/printable.ts';
import { firstNames } from '../../text/quantities.ts';
import type { CommandContext } from '../context.ts';
import { artifactsOf, attemptsOf, recordOfTrial, storedBlob } from '../output/stored-batch.ts';
import { wordsFor } from './layout.ts';
import type { ShownTrial } from './story.ts';

/** Finds a finished trial. Throws as {@link findTarget} and {@link trialOf} do. */
export function openTrial(ledger: Ledger, reference: string): ShownTrial {
  return trialOf(ledger, findTarget(ledger.records, reference));
}

/** A trial, or the only one of a batch or a run. Throws `TRIAL_NEEDED`, and as {@link shownTrial} does. */
export function trialOf(ledger: Ledger, target: Target): ShownTrial {
  if (target.kind === 'trial') return shownTrial(ledger, target);
  const { batch } = target;
  const runs = listRuns(ledger.records, batch.key);
  const trials = listTrials(ledger.records, batch.key, 'all');
  const [trial, ...others] =
    target.kind === 'run' ? trials.filter(({ run }) => run === target.run.key) : trials;
  const run = runs.find(({ key }) => key === trial?.run);
  if (trial && run && others.length === 0) return shownTrial(ledger, { kind: 'trial', batch, run, trial });
  throw trialNeeded(target, 'this is about one trial');
}

export function trialNeeded({ kind }: Target, why: string): OffsiteError {
  return inputError('TRIAL_NEEDED', `${why}, and the name is that of a ${kind}`, {
    hint: 'Name a trial: case/variant#ordinal. `offsite show` lists them.',
  });
}

/** Throws if the trial has no result yet, or if its record cannot be read. */
export function shownTrial(
  ledger: Ledger,
  { batch, run, trial, olderToo = [] }: Extract<Target, { kind: 'trial' }>,
): ShownTrial {
  const { result, state, ordinal } = trial;
  if (result === undefined) {
    const [older] = olderToo;
    throw inputError('TRIAL_UNFINISHED', `${labelOf(run)}#${ordinal} has no result yet: it is ${state}`, {
      hint:
        older === undefined
          ? 'Look again when it is finished. `offsite resume` continues a batch that was stopped.'
          : `Look again when it is finished, or name an older one: ${older}:${labelOf(run)}#${ordinal}.`,
    });
  }
  const record = recordOfTrial(ledger, trial);
  const short = isLast(ledger, batch) ? undefined : shortBatchIds(ledger.records)(batch.id);
  return {
    batch,
    run,
    trial,
    record,
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

/** Finds what a reference names, as {@link findTarget} does. Prints which batch it takes if none is named. */
export function announcedTarget(context: CommandContext, reference = ''): Target {
  const ledger = context.ledger();
  const target = findTarget(ledger.records, reference);
  const run = target.kind === 'batch' ? undefined : target.run.id;
  const isNamed = [target.batch.id, run].some((id) => id !== undefined && begins(id, reference));
  const { olderToo = [] } = target;
  if (!isNamed && olderToo.length === 0 && isLast(ledger, target.batch)) announceLast(context, target.batch);
  announceOlder(context, ledger, target);
  return target;
}

/** Says that the last batch is taken, and which one that is. */
export function announceLast({ err }: Pick<CommandContext, 'err'>, { id, suite }: StoredBatch): void {
  err.print(text`batch ${id} of ${suite}, the last one`);
}

/** Says which batch is taken for the name of a run, and which older ones have the run too. */
export function announceOlder({ err }: Pick<CommandContext, 'err'>, ledger: Ledger, target: Target): void {
  const { batch, olderToo: others } = target;
  if (others === undefined) return;
  const isTheLast = isLast(ledger, batch);
  if (isTheLast && others.length === 0) return;
  const listed = firstNames(others.map(shortBatchIds(ledger.records)), othersNamed);
  const too = others.length === 0 ? '' : `; also in ${listed}`;
  const which = isTheLast ? 'the last one' : 'the newest that has it';
  err.print(text`batch ${batch.id} of ${batch.suite}, ${ours(which)}${too}`);
}

const othersNamed = 5;

/** Whether the first word of a reference is the id, or the beginning of it. */
function begins(id: string, reference: string): boolean {
  const [word = ''] = reference.trim().split(/[:#\s]/);
  return word !== '' && (id.startsWith(word) || id.replace(/^(batch|run)_/, '').startsWith(word));
}
