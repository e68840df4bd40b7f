import { inputError, OffsiteError } from '../base/offsite-error.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import {
  findBatch,
  fittingBatches,
  lastBatch,
  lastEnded,
  lastWord,
  listBatches,
  listTrials,
} from '../ledger/find.ts';
import { fingerprintsOf } from '../ledger/fingerprints.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { StoredTrial } from '../ledger/trial-rows.ts';
import { batchMarks } from '../record/batch-marks.ts';
import type { KnownFingerprint } from '../record/fingerprint.ts';
import { readRecord } from '../record/read-record.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { usageOf } from '../record/usage.ts';
import type { CaseValues, CaseVerdicts } from '../stats/pass-rate.ts';
import { begunWith, orNearest } from '../text/nearest.ts';

/** What a reference of `offsite compare` names: one or several batches, and perhaps a variant. */
export interface Reference {
  /** As the user wrote it. */
  name: string;
  batches: StoredBatch[];
  variant: string | undefined;
}

/** The numbers that are compared besides verdicts. */
export const measures = ['durationMs', 'tokens', 'costUsd'] as const;
export type Measure = (typeof measures)[number];

/** One side of a comparison: the trials of one variant. */
export interface Side {
  batches: string[];
  /** What to know about the batches, such as that they replay, or that trials are left. */
  marks: string[];
  variant: string;
  cases: SideCase[];
  /** Of its trials with a verdict. Empty for a baseline. */
  fingerprints: KnownFingerprint[];
  /** Trials without a result. */
  unfinished: number;
  /** Trials whose result cannot be read, or has another verdict than the ledger. They do not count. */
  unreadable: number;
  /** For a side that is a baseline of the service: what it is made of. */
  baseline?: BaselineFacts;
}

export interface BaselineFacts {
  runs: number;
  /** The versions that the runs' harnesses reported. */
  harnessVersions: string[];
  profileVersions: string[];
}

export interface SideCase extends CaseVerdicts {
  /** The numbers of the scored trials, where they are known. */
  values: Record<Measure, number[]>;
}

/**
 * Reads `BATCH`, `BATCH:VARIANT`, `BATCH+BATCH:VARIANT`, or `:VARIANT` of the last batch. A set stands for
 * its batches. Takes the names of batches that {@link findBatch} takes, and throws the same errors. Several
 * batches of one suite count as one: further batches have further trials.
 */
export function readReference(ledger: Ledger, name: string): Reference {
  const { records } = ledger;
  // The id of a foreign service may hold any characters.
  if (ledger.batches.find(name).length > 0)
    return { name, batches: [findBatch(records, name)], variant: undefined };
  const colon = name.indexOf(':');
  const variant = colon === -1 ? undefined : name.slice(colon + 1);
  if (variant === '' || name.startsWith('+') || name.endsWith('+'))
    throw inputError(
      'REFERENCE_INCOMPLETE',
      `"${name}" names no ${variant === '' ? 'variant after the colon' : 'batch on one side of the +'}`,
      { hint: 'Write BATCH, BATCH:VARIANT or BATCH+BATCH; :VARIANT is a variant of the last batch.' },
    );
  const batches = (colon === -1 ? name : name.slice(0, colon) || lastWord).split('+');
  if (colon !== 0) refuseBareVariant(ledger, colon === -1 ? name : name.slice(0, colon));
  return { name, variant, batches: batches.flatMap((reference) => batchesNamed(ledger, reference)) };
}

/** Throws `BATCH_UNKNOWN` for a name that no batch has, but that a variant of the last batch begins with. */
function refuseBareVariant({ records, sets }: Ledger, name: string): void {
  if (sets.find(name) || fittingBatches(records, name).length > 0) return;
  if (name.includes('+')) return;
  const variants = listTrials(records, lastBatch(records).key).map(({ variant }) => variant);
  const meant = variants.find((each) => each === name) ?? variants.find((each) => each.startsWith(name));
  if (meant === undefined) return;
  throw inputError('BATCH_UNKNOWN', `the data folder has no batch ${name}`, {
    hint: `For the variant ${meant} of the last batch, write :${meant}. For a variant of another batch, put the batch before it: BATCH:${meant}.`,
  });
}

/** A batch, or the batches of a set that were started. */
function batchesNamed({ records, sets }: Ledger, reference: string): StoredBatch[] {
  const set = sets.find(reference);
  const batches = set ? sets.parts(set.key).flatMap(({ batch }) => batch ?? []) : [];
  if (batches.length > 0) return batches;
  // One that has not ended has only its quickest trials.
  const ended = reference === lastWord ? lastEnded(records) : undefined;
  return [ended ?? findBatch(records, reference)];
}

/** The variants of a reference's batches: the named one, or all. Throws `VARIANT_UNKNOWN`. */
export function variantsOf(ledger: Ledger, { name, batches, variant }: Reference): string[] {
  const trials = batches.flatMap(({ key }) => listTrials(ledger.records, key));
  const names = [...new Set(trials.map((trial) => trial.variant))];
  if (variant === undefined) return names;
  const [meant, ...others] = begunWith(variant, names);
  if (meant !== undefined && others.length === 0) return [meant];
  const [{ id = '', suite = '' } = {}] = batches;
  const what = `batch ${id} of ${suite} has no variant ${variant}`;
  throw inputError('VARIANT_UNKNOWN', `${name}: ${what}${orNearest(variant, names)}`, {
    hint: 'Name one of its variants, or none to compare all.',
  });
}

/** The trials of a variant, by case. */
export function sideOf(ledger: Ledger, batches: readonly StoredBatch[], variant: string): Side {
  const trials = batches
    .flatMap(({ key }) => listTrials(ledger.records, key))
    .filter((trial) => trial.variant === variant);
  const side: Side = {
    batches: batches.map(({ id }) => id),
    marks: marksOf(ledger, batches, variant),
    variant,
    cases: [],
    fingerprints: batches
      .flatMap(({ key }) => fingerprintsOf(ledger.records, key))
      .filter((one) => one.variant === variant),
    unfinished: 0,
    unreadable: 0,
  };
  for (const [id, ofCase] of Map.groupBy(trials, ({ caseId }) => caseId)) {
    const one: SideCase = {
      id,
      passed: 0,
      failed: 0,
      void: 0,
      values: { durationMs: [], tokens: [], costUsd: [] },
    };
    side.cases.push(one);
    for (const trial of ofCase) {
      if (trial.verdict === undefined) side.unfinished++;
      if (trial.verdict === undefined) continue;
      const measured = measuredIn(ledger, trial);
      if (!measured) {
        side.unreadable++;
        continue;
      }
      one[trial.verdict]++;
      if (trial.verdict === 'void') continue;
      for (const measure of measures) {
        const value = measured[measure];
        if (value !== undefined) one.values[measure].push(value);
      }
    }
  }
  return side;
}

/**
 * The marks of batches, of several with their ids. Trials that are left are the variant's. Whether a service
 * has the results does not change a comparison.
 */
function marksOf({ records }: Ledger, batches: readonly StoredBatch[], variant: string): string[] {
  const marked = batches.flatMap(({ key }) => listBatches(records, { only: key }));
  const left = ({ key }: { key: StoredBatch['key'] }) =>
    listTrials(records, key).filter((trial) => trial.variant === variant && trial.state !== 'finished')
      .length;
  return marked.flatMap((batch) =>
    batchMarks({ ...batch, unfinished: left(batch), unreported: 0, dropped: 0 }).map((mark) =>
      batches.length > 1 ? `${batch.id}: ${mark}` : mark,
    ),
  );
}

/** One measure of a side's cases, for the functions of `stats/`. */
export function valuesOf({ cases }: Side, measure: Measure): CaseValues[] {
  return cases.map(({ id, values }) => ({ id, values: values[measure] }));
}

/** The numbers in a trial's stored result; undefined if that cannot be read, or has another verdict. */
function measuredIn({ blobs }: Ledger, trial: StoredTrial): Partial<Record<Measure, number>> | undefined {
  const stored = trial.result === undefined ? undefined : blobs.tryRead(trial.result);
  if (!stored) return undefined;
  const result = recordIn(stored);
  if (!result || result.verdict !== trial.verdict) return undefined;
  const usage = usageOf(result);
  // A replay costs nothing, and takes no model's time. The service shows no times.
  if (result.replay || result.fromService) return {};
  return {
    durationMs: result.finishedAt - result.startedAt,
    ...(usage?.totalTokens !== undefined && { tokens: usage.totalTokens }),
    ...(usage?.costUsd !== undefined && { costUsd: usage.costUsd }),
  };
}

function recordIn(stored: Buffer): TrialRecord | undefined {
  try {
    return readRecord(JSON.parse(stored.toString('utf8')));
  } catch (error) {
    if (error instanceof OffsiteError) return undefined;
    throw error;
  }
}
