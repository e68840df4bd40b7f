const key = 'offsite-token';

/**
 * Takes the token, or the ticket for one, out of the address, so that it is not in bookmarks and screenshots,
 * and keeps the token for this tab. Undefined if there is none.
 */
export async function takeToken(): Promise<string | undefined> {
  const { name, code } = /^#(?<name>token|ticket)=(?<code>[\w-]+)/.exec(location.hash)?.groups ?? {};
  if (code !== undefined) {
    history.replaceState(null, '', '#/');
    const token = name === 'token' ? code : await redeem(code);
    if (token !== undefined) sessionStorage.setItem(key, token);
  }
  return sessionStorage.getItem(key) ?? undefined;
}

async function redeem(ticket: string): Promise<string | undefined> {
  try {
    const response = await fetch('/api/token', { headers: { authorization: `Bearer ${ticket}` } });
    return response.ok ? ((await response.json()) as { token: string }).token : undefined;
  } catch {
    return undefined;
  }
}
