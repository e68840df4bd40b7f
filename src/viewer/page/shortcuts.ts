import { useLayoutEffect, useRef } from 'preact/hooks';
import { keep, kept } from './kept.ts';

export interface Shortcut {
  /** Names as `KeyboardEvent.key` has them. */
  keys: string[];
  /** What it does, for the help. */
  does: string;
  run: () => void;
}

/** All active shortcuts, of the outermost part of the page first. */
const active: { current: Shortcut[] }[] = [];

export function activeShortcuts(): Shortcut[] {
  return active.flatMap(({ current }) => current);
}

const key = 'offsite-shortcuts';
let areOn = kept(key) !== 'off';

/** Whether single keys do something. Speech input and some screen readers need them off. */
export function shortcutsAreOn(): boolean {
  return areOn;
}

export function turnShortcuts(on: boolean): void {
  areOn = on;
  keep(key, on ? undefined : 'off');
}

addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (!shortcutsAreOn() && event.key !== 'Escape') return;
  if (isTyping(event.target) || document.querySelector('dialog[open]')) return;
  // The innermost part of the page comes first.
  const found = activeShortcuts().findLast(({ keys }) => keys.includes(event.key));
  if (!found) return;
  event.preventDefault();
  found.run();
});

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('input:not([type=checkbox]), textarea, select');
}

/** Activates shortcuts for as long as the component is shown, from its first frame on. */
export function useShortcuts(shortcuts: Shortcut[]): void {
  const list = useRef(shortcuts);
  list.current = shortcuts;
  useLayoutEffect(() => {
    active.push(list);
    return () => void active.splice(active.indexOf(list), 1);
  }, []);
}

interface Rows<Item> {
  /** What a row is, such as `trial`. */
  what: string;
  items: readonly Item[];
  /** The place of the current item; -1 if there is none. */
  at: number;
  select: (item: Item) => void;
  /** Without it, a row is opened as soon as it is selected. */
  open?: { does: string; run: (item: Item) => void };
  /** The rows that some keys stop at, such as `that failed`. */
  stops?: { which: string; fits: (item: Item) => boolean };
}

/** The shortcuts that go through rows. */
export function rowShortcuts<Item>({ what, items, at, select, open, stops }: Rows<Item>): Shortcut[] {
  const move = (direction: 1 | -1, fits?: (item: Item) => boolean) => () => {
    const next = nextOf(items, at, direction, fits);
    if (next !== undefined) select(next);
  };
  const current = items[at];
  return [
    { keys: open ? ['j', 'ArrowDown'] : ['j'], does: `Next ${what}`, run: move(1) },
    { keys: open ? ['k', 'ArrowUp'] : ['k'], does: `Previous ${what}`, run: move(-1) },
    ...(stops
      ? [
          { keys: ['n', ']'], does: `Next ${what} ${stops.which}`, run: move(1, stops.fits) },
          { keys: ['p', '['], does: `Previous ${what} ${stops.which}`, run: move(-1, stops.fits) },
        ]
      : []),
    ...(open
      ? [{ keys: ['Enter', 'o'], does: open.does, run: () => current !== undefined && open.run(current) }]
      : []),
  ];
}

/**
 * The next item in a direction that fits, from the first or last one if none is current. Undefined at the
 * end.
 *
 * @param at the place of the current one; -1 if there is none
 */
export function nextOf<Item>(
  items: readonly Item[],
  at: number,
  direction: 1 | -1,
  fits: (item: Item) => boolean = () => true,
): Item | undefined {
  if (direction === 1) return items.slice(at + 1).find(fits);
  return items.slice(0, at === -1 ? items.length : at).findLast(fits);
}
