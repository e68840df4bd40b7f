import fc from 'fast-check';

/** `npm test` sets it if it leaves the long tests out. */
const isShort = process.env.OFFSITE_TESTS === 'short';

/** So many random inputs for a property, or a third of them in the short tests. */
export function runs(count: number): number {
  return isShort ? Math.ceil(count / 3) : count;
}

/**
 * All forms of one thing, or every third of them in the short tests, the first among them. For forms that take
 * a process or a container each.
 */
export function someOf<T>(forms: readonly T[]): T[] {
  return isShort ? forms.filter((_, index) => index % 3 === 0) : [...forms];
}

/** For properties that name no number. */
fc.configureGlobal({ numRuns: runs(100) });
