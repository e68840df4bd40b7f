import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Context, Hono } from 'hono';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { ReadingOfRecords } from '../../ledger/listings.ts';
import { changedAfter, lastChange } from '../../ledger/trial-rows.ts';
import type { Redactor } from '../../redaction/redactor.ts';
import type { RecordReference } from '../model/data-source.ts';
import type { LedgerChanges } from '../model/shapes.ts';
import { readBatches, readBatchSoFar } from '../read/batches.ts';
import { RecordReader } from '../read/record-reader.ts';
import { readTrial, readValue } from '../read/trial.ts';
import type { PageFiles } from './page-files.ts';

interface ViewerParts {
  ledger: Ledger;
  /** Removes known keys from all answers, also from what was stored before they were known. */
  redactor: Redactor;
  files: PageFiles;
  access: Access;
  /** The port that the server listens on. */
  port: () => number;
  /** Ends requests that wait for changes. */
  closing: AbortSignal;
}

/** The HTTP side of the viewer. Everybody on this machine gets the page's files. Data needs the token. */
export function createApplication(parts: ViewerParts): Hono {
  const { ledger, redactor, files, access, port, closing } = parts;
  const reader = new RecordReader(ledger);
  const unreadable: ReadingOfRecords['unreadable'] = new Map();
  const application = new Hono();

  application.use(async (context, next) => {
    const refusal = refusalOf(context.req.raw, port());
    if (refusal) context.res = refusal;
    else await next();
    for (const [name, value] of Object.entries(securityHeaders)) context.res.headers.set(name, value);
  });
  application.use('/api/*', async (context, next) => {
    if (access.isGranted(context.req.raw)) return next();
    return failed(401, 'The token is missing or wrong. Open the address that `offsite view` printed.');
  });

  const answer = (value: unknown) =>
    value === undefined
      ? failed(404, 'This data folder has no such batch or trial. It may have been pruned.')
      : new Response(redactor.json(value), { headers: { 'content-type': 'application/json' } });

  application.get('/api/batches', () => answer(readBatches(ledger)));
  application.get('/api/batches/:key', async (context) =>
    answer(await readBatchSoFar(ledger, keyOf(context), unreadable)),
  );
  application.get('/api/trials/:key', (context) => answer(readTrial(ledger, reader, referenceOf(context))));
  application.get('/api/trials/:key/value', (context) => {
    const { pointer = '', limit } = context.req.query();
    const most = Number(limit) || undefined;
    const text = readValue(ledger, reader, referenceOf(context), pointer, most);
    if (text === undefined) return answer(undefined);
    return new Response(redactor.text(text), { headers: { 'content-type': 'text/plain; charset=utf-8' } });
  });
  application.get('/api/blobs/:sha256', (context) => blob(parts, context.req.param('sha256')));
  application.get('/api/changes', async (context) => {
    const signal = AbortSignal.any([closing, context.req.raw.signal]);
    const { after, wait } = context.req.query();
    return answer(await changesAfter(ledger, after, wait === '0' ? 0 : quietMs, signal));
  });
  application.get('*', (context) => {
    const file = files.get(context.req.path);
    if (!file) return failed(404, 'There is nothing here.');
    return new Response(Buffer.from(file.content), { headers: { 'content-type': file.type } });
  });
  application.onError((error) => {
    const isExpected = error instanceof OffsiteError;
    return failed(isExpected ? 422 : 500, redactor.text(messageOf(error)));
  });
  return application;
}

/** A stored content, always as a file to download: it may be anything that an agent wrote. */
function blob({ ledger, redactor }: ViewerParts, sha256: string): Response {
  if (!/^[0-9a-f]{64}$/.test(sha256) || !ledger.blobs.stat(sha256))
    return failed(404, 'This content is not in the ledger.');
  return new Response(Buffer.from(redactor.whole(ledger.blobs.read(sha256))), {
    headers: { 'content-type': 'application/octet-stream', 'content-disposition': 'attachment' },
  });
}

function keyOf(context: Context): number {
  const key = Number(context.req.param('key'));
  // No row has the key 0. NaN would be NULL in a statement, and could choose all rows.
  return Number.isSafeInteger(key) ? key : 0;
}

function referenceOf(context: Context): RecordReference {
  const attempt = context.req.query('attempt');
  return { trial: keyOf(context), attempt: attempt === undefined ? undefined : Number(attempt) };
}

function failed(status: number, message: string): Response {
  return new Response(JSON.stringify({ message }), {
    status,
    headers: { 'content-type': 'application/json' },
  });
}

/** Milliseconds between two looks at the journal. */
const everyMs = 1_000;
/** Changes in one answer. */
const changesAtOnce = 5_000;
/** Milliseconds without a change after which a client gets an answer, as a sign that the server lives. */
const quietMs = 15_000;

/**
 * What changed in the ledger after a change, as soon as something has; without one, the last change. Another
 * process may make changes. One look costs a query by key.
 *
 * @param waitMs milliseconds after which the answer is that nothing changed
 */
async function changesAfter(
  { records }: Ledger,
  after: string | undefined,
  waitMs: number,
  signal: AbortSignal,
): Promise<LedgerChanges> {
  const known = after === undefined ? undefined : Number(after);
  if (known === undefined) return { last: lastChange(records), batches: [], trials: [] };
  const end = performance.now() + waitMs;
  for (;;) {
    const changed = changedAfter(records, known, changesAtOnce);
    if (changed.last > known || signal.aborted || performance.now() >= end) return changed;
    await delay(everyMs, undefined, { signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }
}

/**
 * Why a request is refused; undefined if it is not. Another site that a browser has open can send requests
 * here. With DNS rebinding they even look like requests to that site, so the Host header must name this
 * address.
 *
 * @param port the port that the server listens on
 */
function refusalOf(request: Request, port: number): Response | undefined {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
  const host = request.headers.get('host') ?? '';
  if (!hosts.includes(host)) return failed(403, 'The Host header names another server.');
  const origin = request.headers.get('origin');
  if (origin !== null && origin !== `http://${host}`)
    return failed(403, 'A page of another origin sent this request.');
  const site = request.headers.get('sec-fetch-site');
  // `none`: a person typed the address.
  if (site !== null && site !== 'same-origin' && site !== 'none' && !opensPage(request))
    return failed(403, 'A page of another site sent this request.');
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return failed(405, 'Use GET: the viewer changes nothing.');
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
const securityHeaders: Readonly<Record<string, string>> = {
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

/** Decides who may read: those who have the token. */
export class Access {
  readonly token = randomBytes(24).toString('base64url');
  readonly #used = Promise.withResolvers<void>();
  /** Resolves when the token is used for the first time. */
  readonly used = this.#used.promise;

  /** Whether a request carries the token. */
  isGranted(request: Request): boolean {
    // Compared in constant time, so that the time does not reveal how much of a guess is right.
    const given = request.headers.get('authorization') ?? '';
    const isGranted = timingSafeEqual(digest(given), digest(`Bearer ${this.token}`));
    if (isGranted) this.#used.resolve();
    return isGranted;
  }
}

const digest = (text: string) => createHash('sha256').update(text).digest();
