import {
  type CaseVerdicts,
  effectiveTrials,
  type Interval,
  mean,
  scoredTrials,
  studentQuantile,
  usualConfidence,
  wilsonInterval,
} from './pass-rate.ts';

export interface Noise {
  /** Cases with at least two scored trials. */
  repeated: number;
  /** The repeated cases with both a pass and a failure: they flip by themselves. */
  flipping: string[];
  /**
   * How far apart the pass rates of two batches of these cases are by luck alone, in 95 of 100 pairs, from 0
   * to 1. Undefined until a case has two scored trials.
   */
  luck: number | undefined;
}

/** What the repeats of one variant say about noise. */
export function noiseOf(cases: readonly CaseVerdicts[]): Noise {
  const repeated = cases.filter((one) => scoredTrials(one) >= 2);
  const flipping = repeated.filter(({ passed, failed }) => passed > 0 && failed > 0);
  const scored = cases.filter((one) => scoredTrials(one) > 0);
  const halfWidth = halfWidthFor(scored, scoredTrials, usualConfidence);
  return {
    repeated: repeated.length,
    flipping: flipping.map(({ id }) => id),
    // The difference of two independent rates has twice the variance of one.
    luck: halfWidth === undefined ? undefined : Math.min(1, halfWidth * Math.SQRT2),
  };
}

/** The chance that at least one of `k` trials of a case passes, and that all pass: means over the cases. */
export interface PassAtK {
  k: number;
  /** At least one of k passes: pass@k. */
  any: number;
  /** All of k pass: pass^k. */
  all: number;
  anyInterval: Interval;
  allInterval: Interval;
}

/**
 * pass@k and pass^k for each k up to the smallest number of scored trials of a case that has any. The
 * intervals are computed as in `passRate`. For k = 1, both chances equal its rate.
 */
export function passAtEachK(cases: readonly CaseVerdicts[], confidence: number = usualConfidence): PassAtK[] {
  const scored = cases.filter((one) => scoredTrials(one) > 0);
  if (scored.length === 0) return [];
  const trials = scored.reduce((sum, one) => sum + scoredTrials(one), 0);
  const intervalOf = (values: readonly number[]) => {
    const effective = effectiveTrials(values, trials);
    return wilsonInterval(mean(values) * effective, effective, confidence);
  };
  const largest = Math.min(...scored.map(scoredTrials));
  return Array.from({ length: largest }, (_, index) => {
    const k = index + 1;
    const any = scored.map((one) => passAtK(scoredTrials(one), one.passed, k));
    const all = scored.map((one) => passHatK(scoredTrials(one), one.passed, k));
    return {
      k,
      any: mean(any),
      all: mean(all),
      anyInterval: intervalOf(any),
      allInterval: intervalOf(all),
    };
  });
}

/**
 * pass@k: the chance that at least one of k trials passes. The unbiased estimate 1 - C(n-c, k) / C(n, k) of
 * Chen et al., "Evaluating Large Language Models Trained on Code", arXiv:2107.03374, 2021.
 *
 * @param n trials, at least k
 * @param c passed trials
 */
export function passAtK(n: number, c: number, k: number): number {
  return 1 - passHatK(n, n - c, k);
}

/**
 * pass^k: the chance that all of k trials, drawn without replacement, pass. The unbiased estimate C(c, k) /
 * C(n, k) of Yao et al., "τ-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains",
 * arXiv:2406.12045, 2024.
 *
 * @param n trials, at least k
 * @param c passed trials
 */
export function passHatK(n: number, c: number, k: number): number {
  let chance = 1;
  for (let drawn = 0; drawn < k; drawn++) chance *= Math.max(0, c - drawn) / (n - drawn);
  return chance;
}

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

/** Returns whole numbers from 0 (inclusive) to a bound (exclusive). */
export type RandomIndex = (bound: number) => number;

/**
 * A seeded generator of random numbers: the same seed gives the same numbers on every machine. It is sfc32
 * ("small fast counter", Chris Doty-Humphrey, PractRand 2010), which passes PractRand and has a period of at
 * least 2^32. Not for secrets.
 *
 * @param seed a whole number below 2^32
 */
export function randomIndex(seed: number): RandomIndex {
  let a = seed >>> 0;
  let b = 0x9e3779b9;
  let c = 0x243f6a88;
  let counter = 1;
  const next = () => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  // Mixes the seed into all of the state.
  for (let n = 0; n < 15; n++) next();
  return (bound) => Math.floor((next() / 2 ** 32) * bound);
}
