import { randomIndex } from '../../../src/stats/repeats.ts';

/** Draws from the distributions of a scenario; the same seed draws the same. */
export interface Lottery {
  /** @param mean of the value, not of its logarithm */
  lognormal(mean: number, spread: number): number;
  exponential(mean: number): number;
}

export function lottery(seed: number): Lottery {
  const index = randomIndex(seed);
  /** Above 0, at most 1. */
  const uniform = () => (index(2 ** 32) + 1) / 2 ** 32;
  // Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958.
  const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  return {
    lognormal(mean, spread) {
      const variance = Math.log(1 + spread ** 2);
      return mean * Math.exp(Math.sqrt(variance) * normal() - variance / 2);
    },
    exponential: (mean) => -mean * Math.log(uniform()),
  };
}
