import fc from 'fast-check';

/** `npm test` sets the variable if it leaves out the long tests. */
const isShort = process.env.OFFSITE_TESTS === 'short';

/** The number of random inputs for a property: `count`, or a third of it in the short tests. */
export function runs(count: number): number {
  return isShort ? Math.ceil(count / 3) : count;
}

/**
 * All forms of one thing, or every third of them in the short tests, the first among them. Use it if each
 * form takes a process or a container.
 */
export function someOf<T>(forms: readonly T[]): T[] {
  return isShort ? forms.filter((_, index) => index % 3 === 0) : [...forms];
}

/** For properties that name no number. */
fc.configureGlobal({ numRuns: runs(100) });
