import type { z } from 'zod';
import { parseForeignJson } from '../base/parse-json.ts';
import { MiB } from '../bounds/channel.ts';
import { serviceAnswers } from '../bounds/service.ts';
import { type OperationName, operations } from '../contract/operations.ts';
import { receiving } from '../contract/receiving.ts';
import type { Exchange } from './exchange.ts';
import type { Quote } from './options.ts';
import { largestPage, type PageParts, type RunParts, readPage } from './pages/page-reader.ts';
import { type CallContext, type ClientError, readRefusal, UndecodableAnswer } from './refusal.ts';
import { printIssues } from './request.ts';
import { retryAfter } from './retry.ts';

/** How one sending of a request ended. */
export type RequestOutcome =
  | {
      _tag: 'succeeded';
      value: unknown;
      /** What was left out of it, for people. */
      passedOver?: readonly string[];
    }
  | {
      _tag: 'failed';
      error: ClientError;
      /** Whether the service may have acted on the request. False is certain. */
      acted: boolean;
      /** Whether a retry may succeed. */
      transient: boolean;
      /** How long the service asked to wait, in milliseconds. */
      retryAfterMs?: number | undefined;
    };

type Answered = Extract<Exchange, { _tag: 'answered' }>;

/** An answer, and the call that it is for. */
interface Reading {
  answered: Answered;
  quote: Quote;
  context: CallContext;
}

/** Of the operations that were called: to make all of them takes longer than most calls. */
const readers = new Map<OperationName, z.ZodType>();

function readerOf(operation: OperationName): z.ZodType {
  const reader = readers.get(operation) ?? receiving(operations[operation].response);
  readers.set(operation, reader);
  return reader;
}

/** The specification does not show the body of these answers: 2xx is a success, whatever the body. */
const unshown: ReadonlySet<OperationName> = new Set<OperationName>(['evals.reportTrial', 'prompts.promote']);

/**
 * Reads a complete answer. `pageParts` is set if it is a page of runs.
 *
 * `acted` decides whether an operation that must not be repeated may be retried. The service did not act on a
 * request that it refused (3xx, 4xx) or did not accept (429, and 503 with `Retry-After`). It may have acted
 * after other answers: 500, 502, 504 and a 503 without that header may come from a service, or a proxy in
 * front of it, that failed half-way. 408 may come from a proxy that passed the request on and did not wait.
 */
export function readAnswer(reading: Reading, now: number, pageParts?: PageParts<RunParts>): RequestOutcome {
  const { answered, quote, context } = reading;
  const { status, headers } = answered;
  if (status < 300) return pageParts ? readRuns(reading, pageParts) : readSuccess(reading);
  if (status < 400) return readRedirect(reading);

  const retryAfterMs = retryAfter(headers, now);
  const transient = status === 408 || status === 429 || (status >= 500 && status <= 504);
  const acted = status === 408 || (status >= 500 && !(status === 503 && retryAfterMs !== undefined));
  const json = parseJson(answered.body);
  const authenticate = [headers['www-authenticate'] ?? []].flat().join(', ') || undefined;
  const refusal =
    json || status === 401
      ? readRefusal(json?.value, { status, authenticate, retryAfterMs }, quote, context)
      : undefined;
  const error = refusal ?? undecodable('is not a documented error', reading);
  return { _tag: 'failed', error, acted, transient, retryAfterMs };
}

function readSuccess(reading: Reading): RequestOutcome {
  const { answered, context } = reading;
  const json = parseJson(answered.body);
  if (unshown.has(context.operation) && !isPage(answered)) {
    const value = json?.value;
    return { _tag: 'succeeded', value: typeof value === 'object' && value !== null ? value : {} };
  }
  if (!json) return misread('is not JSON', reading);
  const read = readerOf(context.operation).safeParse(json.value);
  return read.success ? { _tag: 'succeeded', value: read.data } : unlike(read.error.issues, reading);
}

function readRuns(reading: Reading, pageParts: PageParts<RunParts>): RequestOutcome {
  const { answered, quote, context } = reading;
  const page = readPage(answered.body, pageParts, quote);
  switch (page._tag) {
    case 'read':
      return { _tag: 'succeeded', value: page, passedOver: page.passedOver };
    case 'unlike':
      return unlike(page.issues, reading);
    case 'broken':
      return misread('is not JSON', reading);
    case 'heavy':
      return oversizedAnswer({ status: answered.status, maximumBytes: largestPage() }, context);
  }
}

function unlike(issues: readonly z.core.$ZodIssue[], reading: Reading): RequestOutcome {
  return misread(`is not as documented:${printIssues(issues, reading.quote, { areAll: false })}\n `, reading);
}

/** The outcome of an answer that says success, and is not what the operation answers. */
function misread(reason: string, reading: Reading): RequestOutcome {
  return { _tag: 'failed', error: undecodable(reason, reading), acted: true, transient: true };
}

/**
 * Redirects are not followed: the key is for this host only. 303 points to the result of a completed action.
 */
function readRedirect({ answered: { status, headers }, quote, context }: Reading): RequestOutcome {
  const location = headers.location === undefined ? null : URL.parse(headers.location, 'relative:/');
  const target = location?.host ? quote(`${location.protocol}//${location.host}`, 200) : 'another path';
  const error = new UndecodableAnswer(
    `the service answered ${status}, a redirect to ${target}; not followed`,
    {
      code: 'CLIENT_REDIRECTED',
      kind: 'input',
      hint: 'If that is the service, use its own address.',
      status,
      context,
    },
  );
  return { _tag: 'failed', error, acted: status === 303, transient: false };
}

const tooLargePage =
  'A page has twenty runs with all that their trials printed. Start batches with fewer trials of a case, or give ' +
  'Node more memory: NODE_OPTIONS=--max-old-space-size=8192.';

/** An answer that was cut off because it is larger than any documented one. */
export function oversizedAnswer(
  { status, maximumBytes }: { status: number; maximumBytes: number },
  context: CallContext,
): RequestOutcome {
  const isPage = context.operation === 'evals.runs.list';
  const most = `${Math.floor(maximumBytes / MiB)} MiB, or has too many values to be read`;
  const error = new UndecodableAnswer(
    `the service's answer to ${context.operation} is larger than ${isPage ? most : `${maximumBytes} bytes`}`,
    {
      code: 'CLIENT_ANSWER_TOO_LARGE',
      hint: isPage ? tooLargePage : undefined,
      status,
      context,
    },
  );
  const refused = status >= 300 && status < 500 && status !== 303 && status !== 408;
  return { _tag: 'failed', error, acted: !refused, transient: false };
}

/** The value, undefined for an empty body. Returns nothing if the body is not JSON. */
function parseJson(body: Buffer): { value: unknown } | undefined {
  if (body.length === 0) return { value: undefined };
  try {
    return { value: parseForeignJson(new TextDecoder('utf-8', { fatal: true }).decode(body)) };
  } catch {
    return undefined;
  }
}

/**
 * A web page is not an answer of the service, whatever its status: a sign-in page or a site's front page
 * answered the request.
 */
function isPage({ headers, body }: Answered): boolean {
  return body.length > 0 && (headers['content-type']?.toLowerCase().startsWith('text/html') ?? false);
}

function undecodable(reason: string, { answered: { status, headers, body }, quote, context }: Reading) {
  const type = quote(headers['content-type'] ?? 'without a type', 100);
  // Cut far beyond what is shown: half a key at the cut would not be found.
  const beginning = quote(body.subarray(0, serviceAnswers.bytes.searched).toString(), 200);
  return new UndecodableAnswer(
    `the service's answer (${status}, ${type}) ${reason}${beginning && `; it begins: ${beginning}`}`,
    {
      code: 'CLIENT_ANSWER_UNDECODABLE',
      hint: 'Check the address: is it the base address of an Eval Service? Does something else answer there?',
      status,
      context,
    },
  );
}
