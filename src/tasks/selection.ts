import picomatch from 'picomatch';
import { OffsiteError } from '../base/offsite-error.ts';
import { randomIndex } from '../stats/random.ts';
import { orNearest } from '../text/nearest.ts';

/** Which tasks of a set are meant. */
export interface TaskSelection {
  /** Globs of ids; all tasks if there are none. */
  include?: readonly string[] | undefined;
  /** Globs of ids that are left out. */
  exclude?: readonly string[] | undefined;
  /** At most this many, after the others were applied. */
  limit?: number | undefined;
  /** A whole number below 2^32. The tasks come in an order that depends on it and on their ids alone. */
  seed?: number | undefined;
}

/**
 * The chosen tasks, in the order of the set, or in that of the seed. Throws an `input` error for a glob in
 * `include` that no id matches.
 */
export function selectTasks<Each extends { id: string }>(
  tasks: readonly Each[],
  { include = [], exclude = [], limit, seed }: TaskSelection,
  noun: 'task' | 'case' = 'task',
): Each[] {
  for (const glob of include) {
    const matches = matcher([glob]);
    if (tasks.some(({ id }) => matches(id))) continue;
    const ids = tasks.map(({ id }) => id);
    throw new OffsiteError(`no ${noun} matches ${JSON.stringify(glob)}${orNearest(glob, ids)}`, {
      code: 'NO_SUCH_TASK',
      kind: 'input',
      hint: 'A * matches any characters of an id.',
    });
  }
  const isIncluded = include.length === 0 ? () => true : matcher(include);
  const isExcluded = exclude.length === 0 ? () => false : matcher(exclude);
  const chosen = tasks.filter(({ id }) => isIncluded(id) && !isExcluded(id));
  return (seed === undefined ? chosen : shuffled(chosen, seed)).slice(0, limit);
}

function matcher(globs: readonly string[]): (id: string) => boolean {
  return picomatch([...globs], { dot: true, flags: 's' });
}

/** By Fisher and Yates, from the order of the ids. */
function shuffled<Each extends { id: string }>(tasks: readonly Each[], seed: number): Each[] {
  const index = randomIndex(seed);
  const order = tasks.toSorted((one, other) => (one.id < other.id ? -1 : one.id > other.id ? 1 : 0));
  for (let last = order.length - 1; last > 0; last--) {
    const other = index(last + 1);
    [order[last], order[other]] = [order[other], order[last]] as [Each, Each];
  }
  return order;
}
