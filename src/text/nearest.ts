import { printedText } from '../bounds/anyone.ts';

/**
 * The name that somebody probably meant: the shortest that begins with what was written, or else, by the rule
 * that the command line has for its commands and options, one of which at most three characters are wrong,
 * missing, too many or swapped, and more than two of five are right.
 */
export function nearest(given: string, names: Iterable<string>): string | undefined {
  const all = [...names];
  const begun = all.filter((name) => name.toLowerCase().startsWith(given.toLowerCase()));
  const [shortest] = begun.toSorted((one, other) => one.length - other.length);
  if (given.length >= fewestBegun && shortest !== undefined) return shortest;
  let best: { name: string; distance: number } | undefined;
  for (const name of all) {
    const longest = Math.max(given.length, name.length);
    if (
      name.length <= 1 ||
      Math.abs(given.length - name.length) > mostWrong ||
      longest > printedText.bytes.compared
    )
      continue;
    const distance = distanceOf(given.toLowerCase(), name.toLowerCase());
    if (distance > mostWrong || (longest - distance) / longest <= 0.4) continue;
    if (!best || distance < best.distance) best = { name, distance };
  }
  return best?.name;
}

const mostWrong = 3;

/** Characters that say enough of a name. */
const fewestBegun = 3;

/**
 * `; did you mean "worker"? available: worker, other`. `names` are all that exist; only the first few are
 * listed.
 */
export function orNearest(given: string, names: readonly string[]): string {
  if (names.length === 0) return '; there is none';
  const near = nearest(given, names);
  const listed = names.slice(0, mostListed).join(', ');
  const more = names.length > mostListed ? ` and ${names.length - mostListed} more` : '';
  return `${near === undefined ? '' : `; did you mean "${near}"?`}; available: ${listed}${more}`.replace(
    '?;',
    '?',
  );
}

/** The names that somebody meant who wrote a name, or the beginning of one: all that begin so. */
export function begunWith(given: string, names: readonly string[]): string[] {
  return names.includes(given) ? [given] : names.filter((name) => given !== '' && name.startsWith(given));
}

const mostListed = 12;

/** How many characters must be changed, inserted, removed or swapped with their neighbour. */
export function distanceOf(one: string, other: string): number {
  const rows = Array.from({ length: one.length + 1 }, (_, row) => [row]);
  const at = (row: number, column: number) => rows[row]?.[column] ?? 0;
  for (let column = 0; column <= other.length; column++) rows[0]?.splice(column, 1, column);
  for (let row = 1; row <= one.length; row++)
    for (let column = 1; column <= other.length; column++) {
      const cost = one[row - 1] === other[column - 1] ? 0 : 1;
      const swapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      const changed = Math.min(
        at(row - 1, column) + 1,
        at(row, column - 1) + 1,
        at(row - 1, column - 1) + cost,
      );
      rows[row]?.push(
        swapped && row > 1 && column > 1 ? Math.min(changed, at(row - 2, column - 2) + 1) : changed,
      );
    }
  return at(one.length, other.length);
}
