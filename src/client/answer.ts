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

const readers = Object.fromEntries(
  Object.entries(operations).map(([name, operation]) => [name, receiving(operation.response)]),
) as Record<OperationName, z.ZodType>;

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
export function readAnswer(
  answered: Answered,
  now: number,
  quote: Quote,
  context: CallContext,
  pageParts?: PageParts<RunParts>,
): RequestOutcome {
  const { status, headers } = answered;
  if (status >= 200 && status < 300)
    return pageParts ? readRuns(pageParts, answered, quote, context) : readSuccess(answered, quote, context);
  if (status >= 300 && status < 400) return readRedirect(answered, quote, context);

  const retryAfterMs = retryAfter(headers, now);
  const transient = status === 408 || status === 429 || (status >= 500 && status <= 504);
  const acted = status === 408 || (status >= 500 && !(status === 503 && retryAfterMs !== undefined));
  const json = parseJson(answered.body);
  const authenticate = [headers['www-authenticate'] ?? []].flat().join(', ') || undefined;
  const refusal =
    json._tag === 'parsed' || status === 401
      ? readRefusal(
          json._tag === 'parsed' ? json.value : undefined,
          { status, authenticate, retryAfterMs },
          quote,
          context,
        )
      : undefined;
  const error = refusal ?? undecodable('is not a documented error', answered, quote, context, retryAfterMs);
  return { _tag: 'failed', error, acted, transient, retryAfterMs };
}

function readSuccess(answered: Answered, quote: Quote, context: CallContext): RequestOutcome {
  const json = parseJson(answered.body);
  if (unshown.has(context.operation) && !isPage(answered)) {
    const value = json._tag === 'parsed' ? json.value : undefined;
    return { _tag: 'succeeded', value: typeof value === 'object' && value !== null ? value : {} };
  }
  if (json._tag === 'broken') return notJson(answered, quote, context);
  const read = readers[context.operation].safeParse(json.value);
  if (read.success) return { _tag: 'succeeded', value: read.data };
  return unlike(read.error.issues, answered, quote, context);
}

function readRuns(
  pageParts: PageParts<RunParts>,
  answered: Answered,
  quote: Quote,
  context: CallContext,
): RequestOutcome {
  const reading = readPage(answered.body, pageParts, quote);
  switch (reading._tag) {
    case 'read':
      return { _tag: 'succeeded', value: reading, passedOver: reading.passedOver };
    case 'unlike':
      return unlike(reading.issues, answered, quote, context);
    case 'broken':
      return notJson(answered, quote, context);
    case 'heavy':
      return oversizedAnswer({ status: answered.status, maximumBytes: largestPage() }, context);
  }
}

function notJson(answered: Answered, quote: Quote, context: CallContext): RequestOutcome {
  const error = undecodable('is not JSON', answered, quote, context);
  return { _tag: 'failed', error, acted: true, transient: true };
}

function unlike(
  issues: readonly z.core.$ZodIssue[],
  answered: Answered,
  quote: Quote,
  context: CallContext,
): RequestOutcome {
  const reason = `is not as documented:${printIssues(issues, quote)}\n `;
  const error = undecodable(reason, answered, quote, context);
  return { _tag: 'failed', error, acted: true, transient: true };
}

/**
 * Redirects are not followed: the key is for this host only. 303 points to the result of a completed action.
 */
function readRedirect({ status, headers }: Answered, quote: Quote, context: CallContext): RequestOutcome {
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

type Parsed = { _tag: 'parsed'; value: unknown } | { _tag: 'broken' };

/** Returns undefined for an empty body. */
function parseJson(body: Buffer): Parsed {
  if (body.length === 0) return { _tag: 'parsed', value: undefined };
  try {
    return {
      _tag: 'parsed',
      value: parseForeignJson(new TextDecoder('utf-8', { fatal: true }).decode(body)),
    };
  } catch {
    return { _tag: 'broken' };
  }
}

/**
 * A web page is not an answer of the service, whatever its status: a sign-in page or a site's front page
 * answered the request.
 */
function isPage({ headers, body }: Answered): boolean {
  return body.length > 0 && (headers['content-type']?.toLowerCase().startsWith('text/html') ?? false);
}

function undecodable(
  reason: string,
  { status, headers, body }: Answered,
  quote: Quote,
  context: CallContext,
  retryAfterMs?: number,
) {
  const type = quote(headers['content-type'] ?? 'without a type', 100);
  // Cut far beyond what is shown: half a key at the cut would not be found.
  const beginning = quote(body.subarray(0, serviceAnswers.bytes.searched).toString(), 200);
  return new UndecodableAnswer(
    `the service's answer (${status}, ${type}) ${reason}${beginning && `; it begins: ${beginning}`}`,
    {
      code: 'CLIENT_ANSWER_UNDECODABLE',
      hint: 'Check the address: is it the base address of an Eval Service? Does something else answer there?',
      status,
      retryAfterMs,
      context,
    },
  );
}
