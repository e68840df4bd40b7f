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
