import { type FittedColumn, fittedRows } from '../../text/fit.ts';
import { ours, type Printable, styled, type Value } from '../../text/printable.ts';
import { percent } from '../../text/quantities.ts';

/** A column of a list. */
export interface Column<Item> extends FittedColumn {
  title: string;
  cell(item: Item): Value;
  /** It is left out unless this is so for an item. */
  where?(item: Item): boolean;
}

/** A line of titles, and one for each item, as wide as the output if that is a terminal. */
export function listText<Item>(
  items: readonly Item[],
  columns: readonly Column<Item>[],
  width = 1_000,
): Printable {
  const shown = columns.filter(({ where = () => true }) => items.some(where));
  const rows = items.map((item) => shown.map(({ cell }) => cell(item)));
  return fittedRows(shown, [shown.map(({ title }) => ours(title)), ...rows], { width, lead: '' });
}

/** What a batch's trials came to. */
export const verdictColumns: readonly Column<{
  passed: number;
  failed: number;
  void: number;
  passRate: number | undefined;
}>[] = [
  { title: 'passed', right: true, cell: ({ passed }) => String(passed) },
  { title: 'failed', right: true, cell: ({ failed }) => (failed > 0 ? styled('red', failed) : '0') },
  {
    title: 'void',
    right: true,
    where: (batch) => batch.void > 0,
    cell: (batch) => (batch.void > 0 ? styled('yellow', batch.void) : '0'),
  },
  { title: 'rate', right: true, cell: ({ passRate }) => percent(passRate) },
];
