import { binomial } from './distributions.ts';

export interface McNemar {
  /** How many cases changed from failed to passed, and from passed to failed. */
  better: number;
  worse: number;
  /** The two-sided exact p-value. It never overstates the evidence, and mostly understates it. */
  exactP: number;
  /** The two-sided mid-p value. This one is shown. */
  midP: number;
}

/**
 * McNemar's test: if both sides were equally good, how often would the cases that changed be split as
 * unevenly as they are, or more? The exact p-value is that of a fair coin (McNemar, "Note on the sampling
 * error of the difference between correlated proportions", Psychometrika 12(2), 1947). The mid-p value counts
 * the observed split half: in practice, its error rate is close to the stated level, while that of the exact
 * test is far below it (Fagerland, Lydersen and Laake, "The McNemar test for binary matched-pairs data: mid-p
 * and asymptotic are better than exact conditional", BMC Medical Research Methodology 13:91, 2013).
 */
export function mcnemar(better: number, worse: number): McNemar {
  if (better + worse === 0) return { better, worse, exactP: 1, midP: 1 };
  const chances = binomial(better + worse, 0.5);
  const fewer = Math.min(better, worse);
  const tail = chances.slice(0, fewer + 1).reduce((sum, chance) => sum + chance, 0);
  const observed = chances[fewer] ?? 0;
  const exactP = Math.min(1, 2 * tail);
  return { better, worse, exactP, midP: better === worse ? 1 - observed / 2 : exactP - observed };
}
