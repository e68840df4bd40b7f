import { inputError } from '../base/offsite-error.ts';
import { orNearest } from '../text/nearest.ts';
import { type BatchRow, batchOf, type StoredBatch, type StoredRun } from './batches.ts';
import {
  ambiguous,
  describedBatch,
  findBatch,
  fittingBatches,
  fittingRuns,
  hintOfFile,
  lastBatch,
  lastWord,
  listOlderBatches,
  listOtherRuns,
  listRuns,
  listTrials,
  unknownBatch,
} from './find.ts';
import type { Records } from './records.ts';
import type { StoredTrial } from './trial-rows.ts';

/** What a reference means. */
export type Target = (
  | { kind: 'batch'; batch: StoredBatch }
  | { kind: 'run'; batch: StoredBatch; run: StoredRun }
  | { kind: 'trial'; batch: StoredBatch; run: StoredRun; trial: StoredTrial }
) & {
  /** The ids of older batches that have the run too, newest first, if no batch is named. */
  olderToo?: readonly string[];
};

/**
 * Finds a batch, a run or a trial. A reference is one of these:
 *
 * - nothing: the last batch
 * - an id of a batch or a run, or its beginning, or `last` for the last batch; a batch wins over its own runs
 * - `case/variant`, or `case` if it has one variant: a run of the last batch, or of the newest that has one
 * - `BATCH:case/variant`: a run of another batch
 * - any of those with `#ordinal`: a trial
 * - what `offsite run` prints for a trial: `✗ case · variant #0  failed  1.9 s`
 *
 * Throws `BATCH_UNKNOWN`, `REFERENCE_UNKNOWN`, `REFERENCE_AMBIGUOUS` with the candidates, and
 * `TRIAL_UNKNOWN`.
 */
export function findTarget(records: Records, reference = ''): Target {
  const { name, ordinal } = readReference(reference);
  const found = name === '' ? { kind: 'batch' as const, batch: lastBatch(records) } : findName(records, name);
  if (ordinal === undefined) return found;
  const { batch } = found;
  const run = found.kind === 'run' ? found.run : onlyRun(records, batch, reference);
  const trials = listTrials(records, batch.key, 'all').filter((trial) => trial.run === run.key);
  const trial = trials.find((one) => one.ordinal === ordinal);
  if (trial) return { ...found, kind: 'trial', run, trial };
  const ordinals = trials.map((one) => `#${one.ordinal}`).join(', ');
  throw inputError('TRIAL_UNKNOWN', `${labelOf(run)} of ${batch.id} has no trial #${ordinal}`, {
    hint: ordinals === '' ? 'It has no trials yet.' : `It has ${ordinals}.`,
  });
}

/** The name of a run within its batch, which {@link findTarget} finds. */
export function labelOf({ caseId, variant }: Pick<StoredRun, 'caseId' | 'variant'>): string {
  return `${caseId}/${variant}`;
}

function readReference(reference: string): { name: string; ordinal: number | undefined } {
  const bare = reference.trim().replace(/^[✓✗○]\s*/, '');
  const match = /^(.*?)\s*#(\d{1,9})(?:\s+(?:passed|failed|void)\b.*)?$/s.exec(bare);
  if (!match) return { name: bare, ordinal: undefined };
  return { name: match[1] ?? '', ordinal: Number(match[2]) };
}

type Found = Exclude<Target, { kind: 'trial' }>;

function findName(records: Records, name: string): Found {
  const last = lastBatch(records);
  const named = runNamed(records, last, name, 'whole');
  if (named) return withOlder(records, named);
  const batches = fittingBatches(records, name).map((batch) => ({ kind: 'batch' as const, batch }));
  const fitting = new Set(batches.map(({ batch }) => batch.key));
  // A service may begin the ids of runs with that of their batch.
  const runs = fittingRuns(records, name)
    .filter((run) => !fitting.has(run.batch))
    .map((run) => ({ kind: 'run' as const, batch: batchOfRun(records, run), run }));
  const isWhole = (id: string, prefix: string) => id === name || id === `${prefix}${name}`;
  const whole: Found[] = [
    ...batches.filter(({ batch }) => name === lastWord || isWhole(batch.id, 'batch_')),
    ...runs.filter(({ run }) => isWhole(run.id, 'run_')),
  ];
  const byId = whole.length > 0 ? whole : [...batches, ...runs];
  const [first, ...others] = byId;
  if (first && others.length === 0) return first;
  if (first) throw ambiguous('REFERENCE_AMBIGUOUS', `things fit ${name}`, byId.map(described));
  const [before = '', ...label] = name.split(':');
  if (label.length > 0 && fittingBatches(records, before).length > 0) {
    const batch = findBatch(records, before);
    const labelled = label.join(':').trim();
    // As in git, nothing after the colon means the whole.
    if (labelled === '') return { kind: 'batch', batch };
    return (
      runNamed(records, batch, labelled, 'beginning') ??
      unknown(`${batch.id} has no run ${labelled}`, records, batch, labelled)
    );
  }
  const begun =
    inOlderBatch(records, last, name, 'whole') ??
    runNamed(records, last, name, 'beginning') ??
    inOlderBatch(records, last, name, 'beginning');
  if (begun) return withOlder(records, begun);
  if (label.length > 0 || name.startsWith('batch_'))
    throw unknownBatch(
      records,
      before || name,
      'Write BATCH:CASE/VARIANT, or CASE/VARIANT of the last batch.',
    );
  return unknown(`the data folder has no batch and no run ${name}`, records, last, name);
}

/**
 * The run of a batch that a name means; undefined if none does. A case's name alone suffices if it has one
 * run.
 */
function runNamed(
  records: Records,
  batch: StoredBatch,
  name: string,
  most: 'whole' | 'beginning',
): Found | undefined {
  const fitting = runsNamed(listRuns(records, batch.key), name, most);
  const [run, other] = fitting;
  if (run && other) {
    const labels = fitting.map(labelOf);
    throw ambiguous('REFERENCE_AMBIGUOUS', `runs of ${batch.id} fit ${name}`, labels, 'Name one of them.');
  }
  return run && { kind: 'run', batch, run };
}

/** The run that a name means in the newest batch that has such a run, apart from the last one. */
function inOlderBatch(
  records: Records,
  last: StoredBatch,
  name: string,
  most: 'whole' | 'beginning',
): Found | undefined {
  const [run] = runsNamed(listOtherRuns(records, last.key), name, most);
  return run && runNamed(records, batchOfRun(records, run), name, most);
}

function withOlder(records: Records, found: Found): Found {
  if (found.kind === 'batch') return found;
  return { ...found, olderToo: listOlderBatches(records, found.run) };
}

/** Of these runs, those that a name means. A whole name wins over a beginning. */
function runsNamed(runs: readonly StoredRun[], name: string, most: 'whole' | 'beginning'): StoredRun[] {
  const wanted = withoutSpaces(name);
  const matching = (fits: (label: string) => boolean) => runs.filter((run) => namesOf(run).some(fits));
  const whole = matching((label) => label === wanted);
  return whole.length > 0 || most === 'whole' ? whole : matching((label) => label.startsWith(wanted));
}

/** The names that a run goes by: with `/`, with `:` or as printed, with the case's id or its name. */
function namesOf({ caseId, caseName, variant }: StoredRun): string[] {
  return [caseId, caseName].flatMap((name) => [
    withoutSpaces(name),
    withoutSpaces(`${name}/${variant}`),
    withoutSpaces(`${name} · ${variant}`),
    // As `compare` names variants.
    withoutSpaces(`${name}:${variant}`),
  ]);
}

function withoutSpaces(name: string): string {
  return name.replace(/\s+/g, '');
}

function onlyRun(records: Records, batch: StoredBatch, reference: string): StoredRun {
  const runs = listRuns(records, batch.key);
  const [run, other] = runs;
  if (run && !other) return run;
  throw ambiguous(
    'REFERENCE_AMBIGUOUS',
    `runs of ${batch.id} could have the trial ${reference}`,
    runs.map(labelOf),
    'Name the run too: case/variant#ordinal.',
  );
}

function batchOfRun(records: Records, { batch }: StoredRun): StoredBatch {
  const [row] = records.select<BatchRow>('SELECT * FROM batches WHERE key = ?', batch);
  if (!row) throw new Error(`the ledger has no batch with the key ${batch}`);
  return batchOf(row);
}

function described(found: Found): string {
  if (found.kind === 'batch') return `batch ${describedBatch(found.batch)}`;
  return `run ${found.run.id} (${labelOf(found.run)} of ${found.batch.id})`;
}

/** Names what the user may have meant, in the form that the user wrote: `case/variant`, or a case alone. */
function unknown(what: string, records: Records, { key }: StoredBatch, name: string): never {
  const runs = listRuns(records, key);
  const ofVariant = runs.find(({ variant }) => variant === name);
  const names = name.includes('/') ? runs.map(labelOf) : runs.map(({ caseId }) => caseId);
  const why = ofVariant
    ? `: it is a variant; name the case, too: ${labelOf(ofVariant)}`
    : orNearest(name, [...new Set(names)]);
  throw inputError('REFERENCE_UNKNOWN', `${what}${why}`, {
    hint:
      hintOfFile(name) ??
      (/\s/.test(name) ? 'Write it as CASE/VARIANT, a trial as CASE/VARIANT#ORDINAL. ' : '') +
        '`offsite data batches` lists batches, and `offsite show BATCH` the runs of one.',
  });
}
