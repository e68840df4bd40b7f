import { type CaseVerdicts, scoredTrials } from './cases.ts';
import { studentQuantile } from './distributions.ts';

/**
 * Half the width of the interval of a mean pass rate over exactly these cases. The interval says where the
 * rate would be after very many trials of each case. It is the interval of a stratified mean (Cochran,
 * "Sampling Techniques", 1977, sections 5.4 and 5.6), with one variance within cases for all. Undefined until
 * a case has two scored trials.
 *
 * @param cases each with a scored trial
 * @param trialsOf how many trials a case has, or would have
 */
export function halfWidthFor(
  cases: readonly CaseVerdicts[],
  trialsOf: (one: CaseVerdicts) => number,
  confidence: number,
): number | undefined {
  const variance = trialVariance(cases);
  if (variance === undefined) return undefined;
  const freedom = cases.reduce((sum, one) => sum + trialsOf(one) - 1, 0);
  const t = studentQuantile((1 + confidence) / 2, freedom);
  const sum = cases.reduce((total, one) => total + variance / trialsOf(one), 0);
  return (t * Math.sqrt(sum)) / cases.length;
}

/**
 * The variance of a trial within its case, pooled over the cases. Four imaginary trials that are coin tosses
 * are added to it, because otherwise a few trials that agree would look like certainty. Undefined until a
 * case has two scored trials.
 */
function trialVariance(cases: readonly CaseVerdicts[]): number | undefined {
  const freedom = cases.reduce((sum, one) => sum + scoredTrials(one) - 1, 0);
  if (freedom <= 0) return undefined;
  const squares = cases.reduce((sum, { passed, failed }) => sum + (passed * failed) / (passed + failed), 0);
  const [imaginary, coinToss] = [4, 1 / 4];
  return (squares + imaginary * coinToss) / (freedom + imaginary);
}
