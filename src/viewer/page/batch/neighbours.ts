import { parseFilter } from '../../model/filter.ts';
import type { GridTrial } from '../../model/grid.ts';

/** The trials that a filter leaves, in the order of the batch. */
export function filtered(trials: readonly GridTrial[], filter: string): GridTrial[] {
  return trials.filter(parseFilter(filter).matches);
}

/** Whether a trial is one that "next failed" stops at. */
export function isFailed({ verdict }: GridTrial): boolean {
  return verdict === 'failed' || verdict === 'void';
}

/**
 * The next trial in a direction, which is 1 or -1, that fits; from the first or last one if none is current.
 * Undefined at the end of the list.
 */
export function neighbour(
  trials: readonly GridTrial[],
  current: number | undefined,
  direction: 1 | -1,
  fits: (trial: GridTrial) => boolean = () => true,
): GridTrial | undefined {
  const found = trials.findIndex(({ key }) => key === current);
  const start = found === -1 ? (direction === 1 ? 0 : trials.length - 1) : found + direction;
  for (let index = start; index >= 0 && index < trials.length; index += direction) {
    const trial = trials[index];
    if (trial && fits(trial)) return trial;
  }
  return undefined;
}
