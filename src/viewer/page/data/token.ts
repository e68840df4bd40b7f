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
  const token = sessionStorage.getItem(key) ?? (await tokenOfOtherTabs());
  if (token === undefined) return undefined;
  sessionStorage.setItem(key, token);
  shareWithOtherTabs(token);
  return token;
}

const channel = 'offsite-token';
/** Milliseconds that other tabs have to answer. */
const answerMs = 500;

/** A link that was opened in a new tab begins without a token. Tabs of the same address have it. */
function tokenOfOtherTabs(): Promise<string | undefined> {
  const tabs = new BroadcastChannel(channel);
  return new Promise<string | undefined>((resolve) => {
    tabs.onmessage = ({ data }: MessageEvent<{ token?: string }>) => data.token && resolve(data.token);
    tabs.postMessage({});
    setTimeout(() => resolve(undefined), answerMs);
  }).finally(() => tabs.close());
}

function shareWithOtherTabs(token: string): void {
  const tabs = new BroadcastChannel(channel);
  tabs.onmessage = ({ data }: MessageEvent<{ token?: string }>) => {
    if (data.token === undefined) tabs.postMessage({ token });
  };
}

async function redeem(ticket: string): Promise<string | undefined> {
  try {
    const response = await fetch('/api/token', { headers: { authorization: `Bearer ${ticket}` } });
    return response.ok ? ((await response.json()) as { token: string }).token : undefined;
  } catch {
    return undefined;
  }
}
