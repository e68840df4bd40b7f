const key = 'offsite-token';

/**
 * Takes the token out of the address, so that it is not in bookmarks and screenshots, and keeps it for this
 * tab. Undefined if there is none.
 */
export async function takeToken(): Promise<string | undefined> {
  const [, given] = /^#token=([\w-]+)/.exec(location.hash) ?? [];
  if (given !== undefined) {
    history.replaceState(null, '', '#/');
    sessionStorage.setItem(key, given);
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
