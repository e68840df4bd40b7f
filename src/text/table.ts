import { safeCell, space, widthOf } from './fit.ts';
import { type Line, linesOf, Printable, type Span, type Value } from './printable.ts';
import { needsBar } from './safe-line.ts';

/** A column by its title; one of numbers is aligned at its right. */
type Column = string | { right: string };

/** The space between columns. */
const gap = '  ';

/** Rows in aligned columns, below a line of titles. Titles may be foreign text too. */
export function table(columns: readonly Column[], rows: readonly (readonly Value[])[]): Printable {
  return new Printable((redact) => {
    const cell = (value: Value = '') => safeCell(linesOf(value, redact).flat());
    const titles = columns.map((column) => cell(typeof column === 'string' ? column : column.right));
    const cells = [titles, ...rows.map((row) => columns.map((_, index) => cell(row[index])))];
    const widths = columns.map((_, index) => Math.max(...cells.map((row) => widthOf(row[index] ?? []))));
    const lines = cells.map((row) => lineOf(row, columns, widths));
    // If one line has a bar before it, the other lines are indented to keep the columns aligned.
    return lines.some(needsBar) ? lines.map((line) => (needsBar(line) ? line : [space(2), ...line])) : lines;
  });
}

function lineOf(row: readonly Line[], columns: readonly Column[], widths: readonly number[]): Line {
  const last = row.findLastIndex((cell) => widthOf(cell) > 0);
  return row.slice(0, last + 1).flatMap((cell, index): Span[] => {
    const spare = space((widths[index] ?? 0) - widthOf(cell));
    const before = index === 0 ? [] : [{ text: gap, ours: true }];
    if (typeof columns[index] === 'object') return [...before, spare, ...cell];
    return [...before, ...cell, ...(index === last ? [] : [spare])];
  });
}
