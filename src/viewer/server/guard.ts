/** Why a request is refused. */
export interface RequestRefusal {
  status: 400 | 401 | 403 | 405;
  message: string;
}

/**
 * Whether a request may be answered at all. Another site that a browser has open can send requests here. With
 * DNS rebinding they even look like requests to that site, so the Host header must name this address.
 *
 * @param port the port that the server listens on
 */
export function refusalOf(request: Request, port: number): RequestRefusal | undefined {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
  const host = request.headers.get('host') ?? '';
  if (!hosts.includes(host)) return { status: 403, message: 'The Host header names another server.' };
  const origin = request.headers.get('origin');
  if (origin !== null && origin !== `http://${host}`)
    return { status: 403, message: 'A page of another origin sent this request.' };
  const site = request.headers.get('sec-fetch-site');
  // `none`: a person typed the address.
  if (site !== null && site !== 'same-origin' && site !== 'none' && !opensPage(request))
    return { status: 403, message: 'A page of another site sent this request.' };
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return { status: 405, message: 'Use GET: the viewer changes nothing.' };
  return undefined;
}

/**
 * Whether a browser opens the page in a tab. The file that `offsite view --open` gives to the browser leads
 * here from outside. Other sites can lead here too, which is harmless: the page itself holds no data.
 */
function opensPage(request: Request): boolean {
  const { headers } = request;
  const isTab = headers.get('sec-fetch-mode') === 'navigate' && headers.get('sec-fetch-dest') === 'document';
  return isTab && new URL(request.url).pathname === '/';
}

/**
 * Headers of every answer. The page loads only its own files, shows images of trials only from `blob:` URLs
 * that it made itself, and never writes markup from a text.
 */
export const securityHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' blob:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
};
