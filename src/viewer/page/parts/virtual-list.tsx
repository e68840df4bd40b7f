import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

interface VirtualListProps {
  count: number;
  /** In root font sizes, so that rows grow with the reader's text. */
  rowHeight: number;
  /** Renders a row. Its outermost element gets `style`. */
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
}

interface RowAttributes {
  style: { position: 'absolute'; insetInline: string; top: string; height: string };
}

/** In root font sizes; see `.row.header`. */
const headerHeight = 2.4;
/** Rows above and below those in view that exist too. */
const spare = 12;

/** A list of rows of one height, of which only those in view exist. */
export function VirtualList(props: VirtualListProps) {
  const { count, rowHeight, row, header, shown, label, role = 'rowgroup', activeId } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 0, fontSize: rootFontSize() });
  const height = Math.round(rowHeight * view.fontSize);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const look = () =>
      setView({ top: element.scrollTop, height: element.clientHeight, fontSize: rootFontSize() });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    element.addEventListener('scroll', look, { passive: true });
    look();
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', look);
    };
  }, []);
  useEffect(() => {
    const element = scroller.current;
    if (!element || shown === undefined || shown < 0 || shown >= count) return;
    // The header covers that much of the rows.
    const below = shown * height + height + (header ? headerHeight * view.fontSize : 0);
    const least = below - element.clientHeight;
    element.scrollTop = Math.min(Math.max(element.scrollTop, least), shown * height);
  }, [shown, count, height]);

  // While it scrolls, `row` stays the same, and rows that were rendered are not rendered again.
  const rows = useMemo(() => new Map<number, ComponentChildren>(), [row, height]);
  const rendered = (index: number) => {
    const top = `${index * height}px`;
    const style = { position: 'absolute', insetInline: '0', top, height: `${height}px` } as const;
    const made = rows.get(index) ?? row(index, { style });
    rows.set(index, made);
    return made;
  };
  const first = Math.max(0, Math.floor(view.top / height) - spare);
  const end = Math.min(count, Math.ceil((view.top + view.height) / height) + spare);

  return (
    <div
      ref={scroller}
      class={`scroller ${props.class ?? ''}`}
      role={role}
      aria-label={label}
      aria-activedescendant={activeId}
      tabIndex={0}
    >
      {header}
      <div role="presentation" class="virtual" style={{ height: `${count * height}px` }}>
        {Array.from({ length: Math.max(0, end - first) }, (_, index) => rendered(first + index))}
      </div>
    </div>
  );
}

function rootFontSize(): number {
  return Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
}
