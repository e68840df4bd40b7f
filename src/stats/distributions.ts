/**
 * The probability that a standard normal variable is at most `x`. Marsaglia, "Evaluating the Normal
 * Distribution", Journal of Statistical Software 11(4), 2004: a series that is accurate to 15 digits.
 */
export function normalCdf(x: number): number {
  if (x < -8) return 0;
  if (x > 8) return 1;
  let sum = x;
  let term = x;
  for (let odd = 3, before = Number.NaN; sum !== before; odd += 2) {
    before = sum;
    term *= (x * x) / odd;
    sum += term;
  }
  return 0.5 + (sum * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI);
}

/** The `x` with `normalCdf(x) = probability`. */
export function normalQuantile(probability: number): number {
  return solve(normalCdf, probability, 8);
}

/**
 * The value that a variable with Student's t distribution stays below with the given probability. Abramowitz
 * and Stegun, "Handbook of Mathematical Functions", 1964, 26.7.3 and 26.7.4: finite sums for whole degrees of
 * freedom.
 *
 * @param freedom degrees of freedom, a whole number from 1
 */
export function studentQuantile(probability: number, freedom: number): number {
  // Above this, the difference from the normal distribution is below one thousandth.
  if (freedom > 2_000) return normalQuantile(probability);
  return solve((x) => studentCdf(x, freedom), probability, 1e6);
}

function studentCdf(x: number, freedom: number): number {
  const angle = Math.atan(x / Math.sqrt(freedom));
  const cosine = Math.cos(angle);
  const isOdd = freedom % 2 === 1;
  let term = isOdd ? cosine : 1;
  let sum = freedom === 1 ? 0 : term;
  for (let n = isOdd ? 3 : 2; n <= freedom - 2; n += 2) {
    term *= ((n - 1) / n) * cosine * cosine;
    sum += term;
  }
  const within = isOdd ? (2 / Math.PI) * (angle + Math.sin(angle) * sum) : Math.sin(angle) * sum;
  return (1 + within) / 2;
}

/** The probability of each number of successes in `n` attempts, from 0 to `n`. */
export function binomial(n: number, probability: number): number[] {
  if (probability <= 0 || probability >= 1) {
    const certain = probability <= 0 ? 0 : n;
    return Array.from({ length: n + 1 }, (_, successes) => (successes === certain ? 1 : 0));
  }
  const logOdds = Math.log(probability) - Math.log1p(-probability);
  let log = n * Math.log1p(-probability);
  return Array.from({ length: n + 1 }, (_, successes) => {
    if (successes > 0) log += Math.log((n - successes + 1) / successes) + logOdds;
    return Math.exp(log);
  });
}

/** Bisects an increasing function between `-reach` and `reach`. */
function solve(grows: (x: number) => number, value: number, reach: number): number {
  let [low, high] = [-reach, reach];
  for (let n = 0; n < 100; n++) {
    const middle = (low + high) / 2;
    if (grows(middle) < value) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}
