import { type ComparedBatches, comparedVariants } from '../comparison/comparison.ts';
import { type Reference, readReference, variantsOf } from '../comparison/side.ts';
import { listTrials } from '../ledger/find.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { OffsiteError } from '../offsite-error.ts';
import type { SuitePlan } from '../suite/plan.ts';
import { type Printable, text } from '../text/printable.ts';

/**
 * The batch that `--compare-to` names. Throws an input error before anything runs if it has no variant or no
 * case in common with the plan, because a comparison would then say nothing, however bad the run is.
 */
export function baselineOf(ledger: Ledger, name: string, { variants, cases }: SuitePlan): Reference {
  const reference = readReference(ledger, name);
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

/** Whether a variant is worse, with an interval that excludes zero. */
export function hasRegression(compared: ComparedBatches): boolean {
  return worseIn(compared).length > 0;
}

/** Why `--fail-on-regression` fails the run, or does not. */
export function regressionText(compared: ComparedBatches, before: string): Printable {
  const worse = worseIn(compared);
  return worse.length > 0
    ? text`regression: ${worse.join(', ')} is worse than in ${before} by more than noise`
    : text`no regression: compared with ${before}, nothing is worse by more than noise`;
}

function worseIn({ comparisons }: ComparedBatches): string[] {
  return comparisons.filter(({ difference }) => difference.finding === 'worse').map(({ b }) => b.variant);
}
