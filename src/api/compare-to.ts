import { statSync } from 'node:fs';
import { trialSpec } from '../agent/trial-spec.ts';
import { inputError, OffsiteError } from '../base/offsite-error.ts';
import {
  type BlindVariant,
  baselineSides,
  blindVariants,
  compareWithBaselines,
  plannedCells,
  readBaselines,
} from '../comparison/baseline.ts';
import type { Side } from '../comparison/compare-sides.ts';
import { type ComparedBatches, compareBatches, comparedVariants } from '../comparison/comparison.ts';
import { type Reference, readReference, sideOf, variantsOf } from '../comparison/side.ts';
import { type ListedBatch, listBatches, listTrials } from '../ledger/find.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { fingerprintChanges } from '../record/fingerprint.ts';
import type { SuitePlan } from '../suite/plan.ts';
import { plural } from '../text/quantities.ts';
import { plannedFingerprint } from '../trial/record.ts';
import type { Context } from './context.ts';

/** What the results of a run are compared with. */
export interface OlderSide {
  /** For people. */
  name: string;
  compare(newer: Reference): ComparedBatches;
  /** The variants of the plan that can hardly be found worse, or not at all. */
  blind: readonly BlindVariant[];
  /** The cases, with what each asks or checks otherwise than there, if no other is left to compare. */
  changed: ReadonlyMap<string, readonly string[]>;
}

/** Results that can be compared with nothing, though that is wanted. */
export interface NotCompared {
  whyNot: string;
}

/** The codes of errors that say that there is nothing to compare with, though the name is right. */
const nothingToCompare = ['VARIANTS_DIFFER', 'CASES_DIFFER', 'BASELINES_EMPTY', 'NONE_FINISHED'];

/**
 * The same as {@link olderSide}, for trials that have begun and end whether or not they can be compared.
 * Throws only if there is no batch of that name, or no baselines at all.
 */
export async function olderSideIfAny(
  ...[context, name, plan, signal]: Parameters<typeof olderSide>
): Promise<OlderSide | NotCompared> {
  try {
    return await olderSide(context, name, plan, signal);
  } catch (error) {
    if (!(error instanceof OffsiteError && nothingToCompare.includes(error.code))) throw error;
    return { whyNot: error.message };
  }
}

/**
 * What `--compare-to` names: a batch; with `last`, the last finished batch of the suite; with `baseline`, the
 * service's baselines of the plan's cells. Throws an input error before anything runs if a comparison would
 * say nothing.
 */
export async function olderSide(
  context: Context,
  name: string,
  plan: SuitePlan,
  signal: AbortSignal,
): Promise<OlderSide> {
  const ledger = context.ledger();
  if (name !== 'baseline') {
    const batch = batchNamed(ledger, name, plan, (message) => context.note(message));
    const pairs = comparedVariants(
      variantsOf(ledger, batch),
      plan.variants.map((variant) => variant.name),
    );
    const before = pairs.map(([name, variant]) => ({ ...sideOf(ledger, batch.batches, name), variant }));
    const [[older, newer] = []] = pairs;
    const ofVariant = older === newer ? '' : `: its variant ${older} with ${newer} here`;
    if (name === 'last' || ofVariant !== '') context.note(`compared with ${batch.name}${ofVariant}`);
    return {
      name: batch.name,
      compare: (newer) => compareBatches(ledger, batch, newer),
      blind: blindVariants(plan, before),
      changed: changedCases(plan, before, batch.name),
    };
  }
  const { client } = await context.service();
  const cells = plannedCells(plan);
  const baselines = await readBaselines(client, cells, signal);
  return {
    name: 'the baseline',
    compare: (newer) => compareWithBaselines(ledger, baselines, newer),
    blind: blindVariants(plan, baselineSides(cells, baselines)),
    changed: new Map(),
  };
}

/** Throws an input error, before a run costs anything, if its gate will have no case to judge. */
export function refuseChanged({ name, changed }: OlderSide): void {
  if (changed.size === 0) return;
  const [what, them] = changed.size === 1 ? ['case', 'it'] : ['cases', 'them'];
  const cases = [...changed].slice(0, 5).map(([id, parts]) => `${id} (${parts.join(', ')})`);
  throw inputError(
    'CASES_DIFFER',
    `no case can be compared with ${name}, so no regression can be judged: its ${what} changed: ${cases.join(', ')}`,
    {
      hint: [...changed.values()].flat().includes('source')
        ? 'Nothing was started. Name a fixed `ref` in the `source` of the cases, so that each commit of the ' +
          'project is judged by the same work, or leave out --compare-to.'
        : `Nothing was started. Run ${them} once without --compare-to, and compare with that batch.`,
    },
  );
}

/** The cases of which no variant asks and checks the same as there; none if others are left to compare. */
function changedCases(plan: SuitePlan, before: readonly Side[], older: string): Map<string, string[]> {
  const changed = new Map<string, string[]>();
  for (const { variant: name, fingerprints } of before) {
    const variant = plan.variants.find((one) => one.name === name);
    if (!variant) continue;
    const now = plan.cases.map((planned) => {
      const { id } = planned.request;
      const spec = trialSpec(plan, { case: planned, variant }, { batchId: id, runId: id, ordinal: 0 });
      return { caseId: id, variant: name, parts: plannedFingerprint(spec) };
    });
    // Which images an engine has is known only as it makes the environment.
    const then = fingerprints.map(({ parts: { images: _, ...parts }, ...one }) => ({ ...one, parts }));
    const { cases } = fingerprintChanges(then, now, [older, 'here']) ?? {};
    const common = new Set(then.map(({ caseId }) => caseId));
    for (const { caseId } of now) {
      if (!common.has(caseId)) continue;
      const parts = cases?.[caseId];
      if (parts === undefined) return new Map();
      changed.set(caseId, parts);
    }
  }
  return changed;
}

/**
 * The batch that `--compare-to` names. Throws an input error before anything runs if it has no variant or no
 * case in common with the plan, because a comparison would then say nothing, however bad the run is.
 */
function batchNamed(
  ledger: Ledger,
  name: string,
  { suite, variants, cases }: SuitePlan,
  note: (message: string) => void,
): Reference {
  const reference = name === 'last' ? lastOfSuite(ledger, suite, cases, note) : readNamed(ledger, name);
  const before = variantsOf(ledger, reference);
  const now = variants.map((variant) => variant.name);
  const compared = comparedVariants(before, now).map(([variant]) => variant);
  if (compared.length === 0) {
    throw inputError('VARIANTS_DIFFER', `${name} has no variant of this suite`, {
      hint: `${name} has ${before.join(', ')}; the suite has ${now.join(', ')}.`,
    });
  }
  const known = new Set(cases.map(({ request }) => request.id));
  const trials = reference.batches.flatMap(({ key }) => listTrials(ledger.records, key));
  const common = trials.filter(({ caseId, variant }) => known.has(caseId) && compared.includes(variant));
  if (common.some(({ verdict }) => verdict === 'passed' || verdict === 'failed')) return reference;
  throw inputError('CASES_DIFFER', `${name} has no case of this suite with a verdict`, {
    hint:
      common.length === 0
        ? 'Compare with a batch of the same suite.'
        : `It has ${plural(common.length, 'trial')} of this suite, and none passed or failed: compare with another batch.`,
  });
}

/** A batch, whose id a job may have written to a file. */
function readNamed(ledger: Ledger, name: string): Reference {
  try {
    return readReference(ledger, name);
  } catch (error) {
    const isUnknown = error instanceof OffsiteError && error.code === 'BATCH_UNKNOWN';
    if (!isUnknown) throw error;
    if (!statSync(name, { throwIfNoEntry: false })?.isFile())
      throw inputError('BATCH_UNKNOWN', error.message, {
        hint: `${error.hint}\nThe data folder is ${ledger.dataFolder}.`,
        cause: error,
      });
    throw inputError('BATCH_UNKNOWN', `${name} is a file, not a batch`, {
      hint: `If it has the id of a batch: --compare-to "$(cat ${name})"`,
      cause: error,
    });
  }
}

/**
 * The last finished batch of a suite with verdicts of live models, with the other batches of its set. A batch
 * of chosen cases counts only if it has all those that are asked for. Notes the newer ones that do not count.
 */
function lastOfSuite(
  ledger: Ledger,
  { id, name }: SuitePlan['suite'],
  cases: SuitePlan['cases'],
  note: (message: string) => void,
): Reference {
  const { records, sets } = ledger;
  const whyNot = (batch: ListedBatch): string | undefined => {
    if (batch.unfinished > 0)
      return `it has ${plural(batch.unfinished, 'trial')} left: offsite resume ${batch.id}`;
    if (batch.passed + batch.failed === 0) return 'it has no verdict';
    if (batch.isForeign) return 'it was imported';
    if ((batch.answers ?? 'live') !== 'live') return 'its models did not answer live';
    if (batch.suiteCases === undefined) return undefined;
    const known = new Set(listTrials(records, batch.key).map(({ caseId }) => caseId));
    return cases.every(({ request }) => known.has(request.id)) ? undefined : 'it lacks cases of this run';
  };
  // The newest come first.
  const ofSuite = listBatches(records).filter((batch) => [id, name].includes(batch.suite));
  const finished = ofSuite.filter((batch) => batch.unfinished === 0);
  const at = finished.findIndex((batch) => whyNot(batch) === undefined);
  const last = finished[at];
  const passedOver = finished.slice(0, Math.max(0, at));
  if (passedOver.length > 5) note(`${passedOver.length} newer batches are not compared; the last 5 of them:`);
  for (const batch of passedOver.slice(0, 5))
    note(`not compared with ${batch.id}, which is newer: ${whyNot(batch)}`);
  if (!last) {
    const others = ofSuite.slice(0, 5).map((batch) => `${batch.id} does not count: ${whyNot(batch)}`);
    const more = ofSuite.length - others.length;
    if (more > 0) others.push(`${plural(more, 'older batch', 'older batches')} do not count either.`);
    throw inputError(
      'NONE_FINISHED',
      `the data folder has no finished batch of the suite ${name} to compare with`,
      {
        hint: [
          ...others,
          'Run the suite once without --compare-to, or name another data folder with --data-folder.',
          `The data folder is ${ledger.dataFolder}.`,
        ].join('\n'),
      },
    );
  }
  const place = sets.partNumbers().get(last.key);
  return place ? readReference(ledger, place.id) : { name: last.id, batches: [last], variant: undefined };
}
