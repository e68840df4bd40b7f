const key = 'offsite-token';

/**
 * Takes the token out of the address, so that it is not in bookmarks and screenshots, and keeps it for this
 * tab. Undefined if there is none.
 */
export function takeToken(): string | undefined {
  const given = /^#token=([\w-]+)/.exec(location.hash)?.[1];
  if (given !== undefined) {
    sessionStorage.setItem(key, given);
    history.replaceState(null, '', '#/');
  }
  return sessionStorage.getItem(key) ?? undefined;
}
