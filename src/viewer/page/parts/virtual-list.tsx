import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  type VirtualItem,
  Virtualizer,
  type VirtualizerOptions,
} from '@tanstack/virtual-core';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks';

interface VirtualListProps {
  count: number;
  /** In root font sizes, so that rows grow with the reader's text. */
  rowHeight: number;
  /** Renders a row. Its outermost element gets `style` and `index`. */
  row: (index: number, attributes: RowAttributes) => ComponentChildren;
  /** A row that stays above the others. */
  header?: ComponentChildren;
  /** Scrolls this row into view whenever it changes. */
  shown?: number | undefined;
  class?: string;
  label: string;
  role?: 'rowgroup' | 'listbox';
  /** For a list whose rows are not focusable themselves. */
  activeId?: string | undefined;
  onKeyDown?: (event: KeyboardEvent) => void;
}

interface RowAttributes {
  style: { position: 'absolute'; insetInline: string; top: string; height: string };
}

/** In root font sizes; see `.row.header`. */
const headerHeight = 2.4;

type Options = VirtualizerOptions<HTMLElement, HTMLElement>;

/** A list of rows of one height, of which only those in view exist. */
export function VirtualList(props: VirtualListProps) {
  const { count, rowHeight, row, header, shown, label, role = 'rowgroup', activeId, onKeyDown } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [, rerender] = useReducer((renders: number) => renders + 1, 0);
  const fontSize = useRootFontSize();
  const height = Math.round(rowHeight * fontSize);
  const options: Options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: 12,
    // The header covers that much of the rows.
    scrollPaddingEnd: header ? headerHeight * fontSize : 0,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => rerender(undefined),
  };
  const [virtualizer] = useState(() => new Virtualizer<HTMLElement, HTMLElement>(options));
  virtualizer.setOptions(options);
  useLayoutEffect(() => virtualizer._didMount(), [virtualizer]);
  useLayoutEffect(() => virtualizer._willUpdate());
  // Sizes are cached, and a change of the text's size changes them all.
  useLayoutEffect(() => virtualizer.measure(), [virtualizer, height]);
  useEffect(() => {
    if (shown !== undefined && shown >= 0 && shown < count)
      virtualizer.scrollToIndex(shown, { align: 'auto' });
  }, [virtualizer, shown, count]);

  // While it scrolls, `row` stays the same, and rows that were rendered are not rendered again.
  const rows = useMemo(() => new Map<number, ComponentChildren>(), [row, height]);
  const rendered = ({ index, start }: VirtualItem) => {
    const known = rows.get(index);
    if (known !== undefined) return known;
    const style = {
      position: 'absolute',
      insetInline: '0',
      top: `${start}px`,
      height: `${height}px`,
    } as const;
    const made = row(index, { style });
    rows.set(index, made);
    return made;
  };

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: each role that is given is interactive
    <div
      ref={scroller}
      class={`scroller ${props.class ?? ''}`}
      role={role}
      aria-label={label}
      aria-activedescendant={activeId}
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      {header}
      <div role="presentation" class="virtual" style={{ height: `${virtualizer.getTotalSize()}px` }}>
        {virtualizer.getVirtualItems().map(rendered)}
      </div>
    </div>
  );
}

function rootFontSize(): number {
  return Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
}

function useRootFontSize(): number {
  const [size, setSize] = useState(rootFontSize);
  useEffect(() => {
    const update = () => setSize(rootFontSize());
    addEventListener('resize', update);
    return () => removeEventListener('resize', update);
  }, []);
  return size;
}
