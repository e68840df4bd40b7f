import type { ComponentChildren, HTMLAttributes } from 'preact';
import { narrow, useMedia } from './use-media.ts';
import { VirtualList } from './virtual-list.tsx';

export interface Column<Item> {
  name: ComponentChildren;
  /** The columns of a grid have names that may be cut. */
  title?: string | undefined;
  class?: string;
  isNumber?: boolean;
  /** Whether its cells name their rows. */
  isHeader?: boolean;
  cell: (item: Item) => ComponentChildren;
  /** What else a cell has, such as a title. */
  attributes?: (item: Item) => HTMLAttributes<HTMLSpanElement> & Record<`data-${string}`, string>;
}

interface TableProps<Item> {
  class: string;
  label: string;
  /** Of the part with the rows. */
  rowsLabel: string;
  items: readonly Item[];
  keyOf: (item: Item) => string | number;
  columns: readonly Column<Item>[];
  /** In root font sizes, on a wide and on a narrow screen. */
  rowHeight: { wide: number; narrow: number };
  /** The place of the current item. */
  at: number | undefined;
  /** Whether its row is marked, or only shown. */
  isMarked?: boolean;
  style?: Record<string, string>;
}

/** A table of which only the rows in view exist. */
export function Table<Item>(props: TableProps<Item>) {
  const { label, rowsLabel, items, keyOf, columns, rowHeight, at, isMarked = true, style } = props;
  const isNarrow = useMedia(narrow);
  return (
    <div
      class={`table ${props.class}`}
      role="table"
      aria-label={label}
      aria-rowcount={items.length + 1}
      {...(style && { style })}
    >
      <VirtualList
        header={
          <div class="row header" role="row" aria-rowindex={1}>
            {columns.map(({ name, title, isNumber }, index) => (
              <span key={index} role="columnheader" class={isNumber ? 'number' : undefined} title={title}>
                {name}
              </span>
            ))}
          </div>
        }
        label={rowsLabel}
        count={items.length}
        rowHeight={isNarrow ? rowHeight.narrow : rowHeight.wide}
        shown={at}
        row={(index, attributes) => {
          const item = items[index];
          if (item === undefined) return null;
          const isCurrent = isMarked && index === at;
          return (
            <div
              key={keyOf(item)}
              class={`row ${isCurrent ? 'current' : ''}`}
              role="row"
              aria-rowindex={index + 2}
              aria-current={isCurrent ? 'true' : undefined}
              {...attributes}
            >
              {columns.map((column, place) => (
                <span
                  key={place}
                  role={column.isHeader ? 'rowheader' : 'cell'}
                  class={`${column.isNumber ? 'number' : ''} ${column.class ?? ''}`}
                  {...column.attributes?.(item)}
                >
                  {column.cell(item)}
                </span>
              ))}
            </div>
          );
        }}
      />
    </div>
  );
}
