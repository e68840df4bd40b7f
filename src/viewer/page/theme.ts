const key = 'offsite-theme';

export type Theme = 'system' | 'light' | 'dark';
const themes: readonly Theme[] = ['system', 'light', 'dark'];

export function currentTheme(): Theme {
  const shown = document.documentElement.dataset.theme ?? kept(key);
  return themes.find((theme) => theme === shown) ?? 'system';
}

/** Makes the page light or dark; `system` leaves the choice to the browser. */
export function applyTheme(theme = currentTheme()): void {
  if (theme === 'system') {
    keep(key, undefined);
    delete document.documentElement.dataset.theme;
  } else {
    keep(key, theme);
    document.documentElement.dataset.theme = theme;
  }
}

export function nextTheme(): Theme {
  const next = themes[(themes.indexOf(currentTheme()) + 1) % themes.length] ?? 'system';
  applyTheme(next);
  return next;
}

/** What the browser keeps for this page. Its settings may forbid that. */

export function kept(key: string): string | undefined {
  try {
    return localStorage.getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}

/** @param value undefined removes it */
export function keep(key: string, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // The choice then holds until the page is closed.
  }
}
