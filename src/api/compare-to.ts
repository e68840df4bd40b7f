import { OffsiteError } from '../base/offsite-error.ts';
import { baselineSides, compareWithBaselines, readBaselines } from '../comparison/baseline.ts';
import { blindVariants, plannedCells } from '../comparison/cells.ts';
import { type ComparedBatches, compareBatches, comparedVariants } from '../comparison/comparison.ts';
import { type Reference, readReference, type Side, sideOf, variantsOf } from '../comparison/side.ts';
import { type ListedBatch, listBatches, listTrials } from '../ledger/find.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { SuitePlan } from '../suite/plan.ts';
import { sourcePart } from '../trial/record.ts';
import type { Context } from './context.ts';

/** What the results of a run are compared with. */
export interface OlderSide {
  /** For people. */
  name: string;
  compare(newer: Reference): ComparedBatches;
  /** The variants of the plan that cannot be found worse, however bad the run is. */
  blind: readonly string[];
  /** The cases that begin from another commit than there, if no other is left to compare. */
  moved: readonly string[];
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
    const batch = batchNamed(ledger, name, plan);
    const pairs = comparedVariants(
      variantsOf(ledger, batch),
      plan.variants.map((variant) => variant.name),
    );
    const before = pairs.map(([name, variant]) => ({ ...sideOf(ledger, batch.batches, name), variant }));
    return {
      name: batch.name,
      compare: (newer) => compareBatches(ledger, batch, newer),
      blind: blindVariants(plan, before),
      moved: movedCases(plan, before),
    };
  }
  const { client } = await context.service();
  const cells = plannedCells(plan);
  const baselines = await readBaselines(client, cells, signal);
  return {
    name: 'the baseline',
    compare: (newer) => compareWithBaselines(ledger, baselines, newer),
    blind: blindVariants(plan, baselineSides(cells, baselines)),
    moved: [],
  };
}

/** Throws an input error, before a run costs anything, if its gate will have no case to judge. */
export function refuseMoved({ name, moved }: OlderSide): void {
  if (moved.length === 0) return;
  const [what, begin] = moved.length === 1 ? ['case', 'begins'] : ['cases', 'begin'];
  const which = `its ${what} ${begin} from another commit now: ${moved.slice(0, 5).join(', ')}`;
  throw new OffsiteError(`no case can be compared with ${name}, so no regression can be judged: ${which}`, {
    code: 'CASES_DIFFER',
    kind: 'input',
    hint:
      'Nothing was started. Name a fixed `ref` in the `source` of the cases, so that each commit of the project ' +
      'is judged by the same work, or leave out --compare-to.',
  });
}

function movedCases({ cases }: SuitePlan, before: readonly Side[]): string[] {
  const known = Map.groupBy(
    before.flatMap(({ fingerprints }) => fingerprints),
    ({ caseId }) => caseId,
  );
  const common = cases.filter(({ request }) => known.has(request.id));
  const moved = common.filter(({ request, local }) => {
    const now = sourcePart(local.environment);
    return known.get(request.id)?.every(({ parts }) => parts.source !== now);
  });
  return moved.length === common.length ? moved.map(({ request }) => request.id) : [];
}

/**
 * The batch that `--compare-to` names. Throws an input error before anything runs if it has no variant or no
 * case in common with the plan, because a comparison would then say nothing, however bad the run is.
 */
function batchNamed(ledger: Ledger, name: string, { suite, variants, cases }: SuitePlan): Reference {
  const reference = name === 'last' ? lastOfSuite(ledger, suite, cases) : readReference(ledger, name);
  const before = variantsOf(ledger, reference);
  const now = variants.map((variant) => variant.name);
  const compared = comparedVariants(before, now).map(([variant]) => variant);
  if (compared.length === 0) {
    throw new OffsiteError(`${name} has no variant of this suite`, {
      code: 'VARIANTS_DIFFER',
      kind: 'input',
      hint: `${name} has ${before.join(', ')}; the suite has ${now.join(', ')}.`,
    });
  }
  const known = new Set(cases.map(({ request }) => request.id));
  const trials = reference.batches.flatMap(({ key }) => listTrials(ledger.records, key));
  const isComparable = trials.some(
    ({ caseId, variant, verdict }) =>
      known.has(caseId) && compared.includes(variant) && (verdict === 'passed' || verdict === 'failed'),
  );
  if (isComparable) return reference;
  throw new OffsiteError(`${name} has no case of this suite with a verdict`, {
    code: 'CASES_DIFFER',
    kind: 'input',
    hint: 'Compare with a batch of the same suite.',
  });
}

/**
 * The last finished batch of a suite with verdicts of live models, with the other batches of its set. A batch
 * of chosen cases counts only if it has all those that are asked for.
 */
function lastOfSuite(ledger: Ledger, { id, name }: SuitePlan['suite'], cases: SuitePlan['cases']): Reference {
  const { records, sets } = ledger;
  const hasAll = (batch: ListedBatch) => {
    const known = new Set(listTrials(records, batch.key).map(({ caseId }) => caseId));
    return cases.every(({ request }) => known.has(request.id));
  };
  // The newest come first.
  const last = listBatches(records).find(
    (batch) =>
      [id, name].includes(batch.suite) &&
      batch.unfinished === 0 &&
      batch.passed + batch.failed > 0 &&
      (batch.answers ?? 'live') === 'live' &&
      !batch.isForeign &&
      (batch.suiteCases === undefined || hasAll(batch)),
  );
  if (!last)
    throw new OffsiteError(`the data folder has no finished batch of the suite ${name} to compare with`, {
      code: 'BATCH_UNKNOWN',
      kind: 'input',
      hint:
        'A batch that replays, or that lacks cases of this run, does not count. Run the suite once without ' +
        '--compare-to, or name a batch of another data folder with --data-folder.',
    });
  const place = sets.partNumbers().get(last.key);
  return place ? readReference(ledger, place.id) : { name: last.id, batches: [last], variant: undefined };
}
