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
