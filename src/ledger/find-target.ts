import { inputError } from '../base/offsite-error.ts';
import { orNearest } from '../text/nearest.ts';
import { batchByKey, type StoredBatch, type StoredRun } from './batches.ts';
import {
  ambiguous,
  describedBatch,
  findBatch,
  fittingBatches,
  fittingRuns,
  folderName,
  hintOfFile,
  isWholeId,
  lastBatch,
  lastWord,
  listAllRuns,
  listOlderBatches,
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
  const could = `runs of ${batch.id} could have the trial ${reference}`;
  const run =
    found.kind === 'run'
      ? found.run
      : onlyRun(listRuns(records, batch.key), could, 'Name the run too: case/variant#ordinal.');
  const trials = listTrials(records, batch.key, 'all').filter((trial) => trial.run === run?.key);
  const trial = trials.find((one) => one.ordinal === ordinal);
  if (run && trial) return { ...found, kind: 'trial', run, trial };
  const ordinals = trials.map((one) => `#${one.ordinal}`).join(', ');
  const lacking = run ? `${labelOf(run)} of ${batch.id}` : batch.id;
  throw inputError('TRIAL_UNKNOWN', `${lacking} has no trial #${ordinal}`, {
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
  const ofLast = runNamed(last, runsNamed(listRuns(records, last.key), name, 'whole'), name);
  if (ofLast) return withOlder(records, ofLast);
  const byId = foundById(records, name);
  const [first] = byId;
  if (byId.length > 1) throw ambiguous('REFERENCE_AMBIGUOUS', `things fit ${name}`, byId.map(described));
  if (first) return first;
  const [before = '', ...label] = name.split(':');
  if (label.length > 0 && fittingBatches(records, before).length > 0) {
    const batch = findBatch(records, before);
    const labelled = label.join(':').trim();
    // As in git, nothing after the colon means the whole.
    if (labelled === '') return { kind: 'batch', batch };
    return (
      runNamed(batch, runsNamed(listRuns(records, batch.key), labelled), labelled) ??
      unknown(`${batch.id} has no run ${labelled}`, records, batch, labelled)
    );
  }
  const named = runsNamed(listAllRuns(records), name);
  const [newest] = named;
  const beside = named.filter(({ batch }) => batch === newest?.batch);
  const ofNewest = newest && runNamed(batchByKey(records, newest.batch), beside, name);
  if (ofNewest) return withOlder(records, ofNewest);
  if (label.length > 0 || name.startsWith('batch_'))
    unknownBatch(records, before || name, 'Write BATCH:CASE/VARIANT, or CASE/VARIANT of the last batch.');
  return unknown(`${folderName(records)} has no batch and no run ${name}`, records, last, name);
}

/** The batches and runs whose ids fit a name. A whole id wins over a beginning. */
function foundById(records: Records, name: string): Found[] {
  const batches = fittingBatches(records, name).map((batch) => ({ kind: 'batch' as const, batch }));
  const fitting = new Set(batches.map(({ batch }) => batch.key));
  // A service may begin the ids of runs with that of their batch.
  const runs = fittingRuns(records, name)
    .filter((run) => !fitting.has(run.batch))
    .map((run) => ({ kind: 'run' as const, batch: batchByKey(records, run.batch), run }));
  const whole: Found[] = [
    ...batches.filter(({ batch }) => name === lastWord || isWholeId(batch.id, name)),
    ...runs.filter(({ run }) => isWholeId(run.id, name)),
  ];
  return whole.length > 0 ? whole : [...batches, ...runs];
}

/** The run that a name means of those of a batch that it fits; undefined for none. */
function runNamed(batch: StoredBatch, fitting: readonly StoredRun[], name: string) {
  const run = onlyRun(fitting, `runs of ${batch.id} fit ${name}`, 'Name one of them.');
  return run && { kind: 'run' as const, batch, run };
}

/** The only one of some runs; undefined for none. Throws `REFERENCE_AMBIGUOUS` for several. */
function onlyRun([run, ...others]: readonly StoredRun[], what: string, hint: string): StoredRun | undefined {
  if (!run || others.length === 0) return run;
  throw ambiguous('REFERENCE_AMBIGUOUS', what, [run, ...others].map(labelOf), hint);
}

function withOlder(records: Records, found: Extract<Found, { kind: 'run' }>): Found {
  return { ...found, olderToo: listOlderBatches(records, found.run) };
}

/** Of these runs, those that a name means. A whole name wins over a beginning. */
function runsNamed(runs: readonly StoredRun[], name: string, most?: 'whole'): StoredRun[] {
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
