import { stripVTControlCharacters } from 'node:util';

export interface Column {
  title: string;
  align?: 'left' | 'right';
}

/** Rows in aligned columns, a title line above. Cells may carry terminal colors. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const width = (cell: string) => [...stripVTControlCharacters(cell)].length;
  const widths = columns.map(({ title }, index) =>
    Math.max(width(title), ...rows.map((row) => width(row[index] ?? ''))),
  );
  const line = (cells: readonly string[]) =>
    columns
      .map(({ align }, index) => {
        const cell = cells[index] ?? '';
        const space = ' '.repeat((widths[index] ?? 0) - width(cell));
        return align === 'right' ? space + cell : cell + space;
      })
      .join('  ')
      .trimEnd();
  return [line(columns.map(({ title }) => title)), ...rows.map(line)].join('\n');
}
