import { normalCdf, studentQuantile } from './distributions.ts';
import { type Interval, usualConfidence } from './interval.ts';
import { randomIndex } from './random.ts';

export interface BootstrapOptions {
  /** From 0 to 1; the default is 0.95. */
  confidence?: number | undefined;
  /** The default is 10,000. */
  resamples?: number | undefined;
  /** The same seed gives the same interval. */
  seed?: number | undefined;
  /** What is computed from each resample; the default is `mean`. */
  of?: 'mean' | 'median' | undefined;
}

/**
 * An interval for the mean or median of cases, by the bootstrap: cases are drawn with replacement, as many as
 * there are, and the interval holds the middle of the results of the draws (Efron and Tibshirani, "An
 * Introduction to the Bootstrap", 1993, chapter 13). Give one number for each case, made from all of its
 * trials: then the trials of a case are always drawn together (Miller, "Adding Error Bars to Evals",
 * arXiv:2411.00640, 2024).
 *
 * The plain percentile interval is too narrow for few cases. The levels are therefore those of Hesterberg's
 * expanded percentile interval ("What Teachers Should Know About the Bootstrap", The American Statistician
 * 69(4), 2015, section 4.2), which has the width of a t interval.
 *
 * Undefined for fewer than two values.
 */
export function bootstrapInterval(
  values: readonly number[],
  { confidence = usualConfidence, resamples = 10_000, seed = 1, of = 'mean' }: BootstrapOptions = {},
): Interval | undefined {
  if (values.length < 2) return undefined;
  const sorted = Float64Array.from(values).sort();
  const drawn = of === 'mean' ? drawnMeans(sorted, resamples, seed) : drawnMedians(sorted, resamples, seed);
  drawn.sort();
  const level = expandedLevel(confidence, values.length);
  return { low: cleared(quantileOf(drawn, level)), high: cleared(quantileOf(drawn, 1 - level)) };
}

/** Rounding errors of sums must not decide whether an interval contains zero. */
function cleared(bound: number): number {
  return Math.abs(bound) < 1e-12 ? 0 : bound;
}

/** The level of the interval's lower end, below `(1 - confidence) / 2`. */
export function expandedLevel(confidence: number, cases: number): number {
  const t = studentQuantile((1 + confidence) / 2, cases - 1);
  return normalCdf(-Math.sqrt(cases / (cases - 1)) * t);
}

function drawnMeans(values: Float64Array, resamples: number, seed: number): Float64Array {
  const random = randomIndex(seed);
  const count = values.length;
  return new Float64Array(resamples).map(() => {
    let sum = 0;
    for (let n = 0; n < count; n++) sum += values[random(count)] ?? 0;
    return sum / count;
  });
}

/** Counts how often each value is drawn, and so needs no sorting. */
function drawnMedians(sorted: Float64Array, resamples: number, seed: number): Float64Array {
  const random = randomIndex(seed);
  const count = sorted.length;
  const times = new Uint32Array(count);
  return new Float64Array(resamples).map(() => {
    times.fill(0);
    for (let n = 0; n < count; n++) {
      const drawn = random(count);
      times[drawn] = (times[drawn] ?? 0) + 1;
    }
    const nth = (rank: number) => {
      let index = 0;
      for (let seen = times[0] ?? 0; seen < rank; seen += times[index] ?? 0) index++;
      return sorted[index] ?? 0;
    };
    const middle = Math.ceil(count / 2);
    return count % 2 === 1 ? nth(middle) : (nth(middle) + nth(middle + 1)) / 2;
  });
}

/** Interpolates between the two nearest values. */
function quantileOf(sorted: Float64Array, level: number): number {
  const position = level * (sorted.length - 1);
  const below = sorted[Math.floor(position)] ?? 0;
  const above = sorted[Math.ceil(position)] ?? 0;
  return below + (above - below) * (position - Math.floor(position));
}
