import { styleText } from 'node:util';
import { table } from '../../output/table.ts';
import { breaks, type Counts } from './outcome.ts';
import type { HostileReport } from './run-hostile.ts';
import { harmless } from './steering.ts';

/** The table of attacks, what did not hold with its reason, and the closing line. */
export function printedHostile({ rows, counts }: HostileReport): string {
  const lines = table(
    [{ title: 'suite' }, { title: 'attack' }, { title: 'expected' }, { title: 'seen' }, { title: '' }],
    rows.map(({ suite, attack, expected, seen, broke }) => [
      suite,
      attack,
      expected,
      seen,
      broke === undefined ? '' : styleText('red', broke),
    ]),
  );
  const broken = rows.filter(({ broke }) => broke !== undefined);
  const reasons = broken.map(({ suite, id, attack, broke, reason }) => {
    const where = id === undefined ? suite : `${suite} ${id}`;
    const why = reason === undefined ? '' : `\n  ${harmless(reason).replaceAll('\n', '\n  ')}`;
    return `${where}: ${broke}: ${attack}${why}`;
  });
  return [lines, '', ...reasons, ...(broken.length > 0 ? [''] : []), countsLine(counts)].join('\n');
}

/** `forged 0, escaped 0, …` */
function countsLine(counts: Counts): string {
  return breaks.map((name) => `${name} ${counts[name]}`).join(', ');
}
