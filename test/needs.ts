import { describe, test } from 'vitest';

/**
 * `test` and `describe` for tests that need what not every machine has. If it is missing, they skip the tests
 * and put the reason into the titles, so that a report of skipped tests names it.
 *
 * @param what completes "needs ..."
 */
export function needs(isThere: boolean, what: string) {
  const because = (title: string) => `${title} (skipped: needs ${what})`;
  return {
    test: isThere ? test.skipIf(false) : titled(test.skip, because),
    describe: isThere ? describe.skipIf(false) : titled(describe.skip, because),
  };
}

/** For what only root may do, such as mounting a disk or starting an engine. */
export const byRoot = needs(process.getuid?.() === 0, 'root');

const engineIsHere = process.env.OFFSITE_TEST_ELSEWHERE === undefined;

export const byEngineHere = needs(engineIsHere, 'an engine on this machine');

/** For what root does to the engine's processes, which takes an engine on this machine. */
export const byRootOfEngine = needs(
  process.getuid?.() === 0 && engineIsHere,
  'root, and an engine on this machine',
);

/** The same function, with another title. */
function titled<Register>(register: Register, title: (given: string) => string): Register {
  const call = register as (title: string, ...rest: unknown[]) => unknown;
  return ((given: string, ...rest: unknown[]) => call(title(given), ...rest)) as Register;
}
