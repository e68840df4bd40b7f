import { inputError } from '../base/offsite-error.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import {
  findBatch,
  fittingBatches,
  folderName,
  lastBatch,
  lastEnded,
  lastWord,
  listBatches,
  listTrials,
} from '../ledger/find.ts';
import { fingerprintsOf } from '../ledger/fingerprints.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { listingsOf } from '../ledger/listings.ts';
import { batchMarks } from '../record/batch-marks.ts';
import type { TrialListing } from '../record/listing.ts';
import { begunWith, orNearest } from '../text/nearest.ts';
import { casesOf, type Side } from './compare-sides.ts';

/** What a reference of `offsite compare` names: one or several batches, and perhaps a variant. */
export interface Reference {
  /** As the user wrote it. */
  name: string;
  batches: StoredBatch[];
  variant: string | undefined;
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
      {
        hint: 'Write BATCH, BATCH:VARIANT, BATCH+BATCH or BATCH+BATCH:VARIANT; :VARIANT is a variant of the last batch.',
      },
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
  throw inputError('BATCH_UNKNOWN', `${folderName(records)} has no batch ${name}`, {
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
    hint: /\+.*:/.test(variant)
      ? `Name the variant once, after the batches: ${name.replace(/:[^+]*\+/g, '+')}.`
      : 'Name one of its variants, or none to compare all.',
  });
}

/** The trials of a variant. */
export function sideOf(ledger: Ledger, batches: readonly StoredBatch[], variant: string): Side {
  const { records } = ledger;
  const trials = batches.flatMap(({ key }) => {
    const listings = listingsOf(ledger, key);
    return listTrials(records, key)
      .filter((trial) => trial.variant === variant)
      .map((trial) => ({ ...trial, listing: listings.get(trial.key) }));
  });
  const count = (fits: (trial: (typeof trials)[number]) => boolean) => trials.filter(fits).length;
  return {
    batches: batches.map(({ id }) => id),
    marks: marksOf(ledger, batches, variant),
    variant,
    cases: casesOf(
      trials.map(({ caseId, verdict, listing }) =>
        listing
          ? { caseId, verdict, numbers: numbersOf(listing) }
          : { caseId, verdict: undefined, numbers: {} },
      ),
    ),
    fingerprints: batches
      .flatMap(({ key }) => fingerprintsOf(records, key))
      .filter((one) => one.variant === variant),
    unfinished: count(({ verdict }) => verdict === undefined),
    unreadable: count(({ verdict, listing }) => verdict !== undefined && !listing),
  };
}

/** A replay costs nothing, and takes no model's time. The service shows no times. */
function numbersOf({ replay, fromService, startedAt, finishedAt, totalTokens, costUsd }: TrialListing) {
  return replay || fromService ? {} : { durationMs: finishedAt - startedAt, tokens: totalTokens, costUsd };
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
