import { lines, ours, type Printable, stack, styled, text } from '../../../text/printable.ts';
import { table } from '../../../text/table.ts';
import { type AttackRow, breaks, type Counts } from './outcome.ts';
import type { HostileReport } from './run-hostile.ts';

/** The table of attacks, then each unexpected result with its reason, what was left out, and the counts. */
export function printedHostile({ rows, counts }: HostileReport): Printable {
  const titles = ['suite', 'attack', 'expected', 'seen', ''].map((title) => ({ title }));
  const cells = rows.map(({ suite, attack, expected, seen, broke }) => [
    suite,
    attack,
    expected,
    seen,
    broke === undefined ? '' : styled('red', broke),
  ]);
  const leftOut = rows.flatMap(({ seen, reason }) => (seen === 'not run' && reason ? [reason] : []));
  const reasons = rows.flatMap((row) => (row.broke === undefined ? [] : [reasonOf(row)]));
  return stack([
    table(titles, cells),
    '',
    ...reasons,
    ...(reasons.length > 0 ? [''] : []),
    ...[...new Set(leftOut)].map((reason) => text`not run: ${lines(reason)}`),
    ...(leftOut.length > 0 ? [''] : []),
    countsLine(counts),
  ]);
}

function reasonOf({ suite, id, attack, broke, reason }: AttackRow): Printable {
  const where = id === undefined ? suite : `${suite} ${id}`;
  const line = text`${where}: ${broke ?? ''}: ${attack}`;
  return reason === undefined ? line : text`${line}\n  ${lines(reason)}`;
}

/** `forged 0, escaped 0, …` */
function countsLine(counts: Counts): Printable {
  return ours(breaks.map((name) => `${name} ${counts[name]}`).join(', '));
}
