import type { Clock } from '../base/clock.ts';
import { type Deadline, startDeadline } from '../base/deadline.ts';
import { codesOf, failureText } from '../base/offsite-error.ts';
import { type OperationName, operations } from '../contract/operations.ts';
import type { KnownKeys } from '../redaction/redactor.ts';
import type { Address } from './address.ts';
import { oversizedAnswer, type RequestOutcome, readAnswer } from './answer.ts';
import type { Transport } from './exchange.ts';
import type { CallOptions, Deadlines, Quote, RetryLimits, SentFile } from './options.ts';
import { largestPage, type PageParts, type RunParts } from './pages/page-reader.ts';
import { type CallContext, ConnectionFailure, DeadlineExceeded, UnknownOutcome } from './refusal.ts';
import { encodeRequest } from './request.ts';
import { type RetryBudget, waitBefore } from './retry.ts';

/** What all calls of a client share. */
export interface CallParts {
  address: Address;
  transport: Transport;
  apiKey: string;
  quote: Quote;
  keys: KnownKeys;
  clock: Clock;
  random: () => number;
  note: (message: string) => void;
  deadlines: Deadlines;
  limits: RetryLimits;
  budget: RetryBudget;
  /** Aborts when the client is closed. */
  closing: AbortSignal;
}

/**
 * Calls an operation and returns its answer, read tolerantly.
 *
 * Retries a transient failure if that is safe: always for an operation that is `repeatable`, and for another
 * one only if the service certainly did not act; otherwise it throws {@link UnknownOutcome}. Throws the last
 * attempt's error if attempts, budget or time run out, and the signal's reason if it aborts.
 *
 * @param file is sent instead of the request
 * @param pageParts which parts of the runs are read, if the answer is a page of runs
 */
export async function call(
  parts: CallParts,
  operation: OperationName,
  request: unknown,
  { signal, deadlineMs, file }: CallOptions & { file?: SentFile | undefined },
  pageParts?: PageParts<RunParts>,
): Promise<unknown> {
  const { clock, limits, budget, closing, deadlines } = parts;
  const callMs = deadlineMs ?? (file ? deadlines.file : pageParts ? deadlines.page : deadlines.call);
  const body = file ?? encodeRequest(operation, request, parts);
  const context: CallContext = { operation, attempt: 1 };
  const endsAt = clock.now() + callMs;
  using whole = startDeadline(
    clock,
    callMs,
    [closing, signal],
    () => new DeadlineExceeded('call', callMs, { ...context }),
  );
  whole.signal.throwIfAborted();

  for (; ; context.attempt += 1) {
    const result = await attempt(parts, { ...context }, body, whole, pageParts);
    if (result._tag === 'succeeded') {
      budget.restore();
      for (const message of result.passedOver ?? []) parts.note(message);
      return result.value;
    }
    if (result.acted && !operations[operation].repeatable) throw new UnknownOutcome(result.error, context);
    if (result._tag === 'stopped' || !result.transient || context.attempt >= limits.attempts)
      throw result.error;

    const wait = waitBefore(context.attempt, result.retryAfterMs, limits, parts.random);
    if (clock.now() + wait >= endsAt || !budget.take()) throw result.error;
    await clock.sleep(wait, whole.signal);
  }
}

type Stopped = { _tag: 'stopped'; error: unknown; acted: boolean };

async function attempt(
  { address, transport, apiKey, quote, clock, deadlines }: CallParts,
  context: CallContext,
  body: string | SentFile,
  whole: Deadline,
  pageParts: PageParts<RunParts> | undefined,
): Promise<RequestOutcome | Stopped> {
  const { operation } = context;
  const { origin } = address;
  const file = typeof body === 'string' ? undefined : body;
  const attemptMs = file ? deadlines.file : deadlines.attempt;
  const late = () => new DeadlineExceeded('attempt', attemptMs, context);
  using limit = startDeadline(clock, attemptMs, [whole.signal], late);
  const headers = {
    authorization: `Bearer ${apiKey}`,
    'content-type': file ? file.type : 'application/json',
    ...(file && { 'content-length': String(file.byteSize) }),
    accept: 'application/json',
    'accept-encoding': 'identity',
    'user-agent': 'offsite',
  };
  const exchanged = await transport.exchange(
    { origin, path: address.pathOf(operation), headers, body: typeof body === 'string' ? body : body.open() },
    {
      repeatable: operations[operation].repeatable,
      signal: limit.signal,
      progress: pageParts && limit.renew,
      maximumBytes: pageParts && largestPage(),
    },
  );
  switch (exchanged._tag) {
    case 'answered':
      return readAnswer({ answered: exchanged, quote, context }, clock.now(), pageParts);
    case 'oversized':
      return oversizedAnswer(exchanged, context);
    case 'broken': {
      const { sent } = exchanged;
      return { _tag: 'failed', acted: sent, ...connectionFailure({ ...exchanged, origin }, quote, context) };
    }
    case 'stopped': {
      const stopped = { error: limit.signal.reason, acted: exchanged.sent };
      return limit.expired()
        ? { _tag: 'failed', transient: true, ...stopped }
        : { _tag: 'stopped', ...stopped };
    }
  }
}

/**
 * Codes of Node and OpenSSL for a certificate that does not prove the host's identity. A retry does not
 * change that.
 */
const untrusted = /SELF_SIGNED|^UNABLE_TO_|ISSUER|ALTNAME|^CERT_/;

const hints: Record<string, string> = {
  ECONNREFUSED: 'Is the service running there?',
  ENOTFOUND: 'Check the host name in its address, and the network.',
  EAI_AGAIN: 'Check the network: host names cannot be looked up.',
  ERR_SSL_WRONG_VERSION_NUMBER: 'Does that port speak plain http?',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'Does that port speak plain http?',
};

/** The error of a connection that failed or broke, and whether a retry may succeed. */
function connectionFailure(
  { error, sent, origin }: { error: Error; sent: boolean; origin: string },
  quote: Quote,
  context: CallContext,
): { error: ConnectionFailure; transient: boolean } {
  const codes = codesOf(error);
  const isDistrusted = codes.some((code) => untrusted.test(code));
  const described = quote(failureText(error), 500);
  const [kind, message] = sent
    ? ['CLIENT_CONNECTION_BROKEN', `the connection to ${origin} broke before the answer was complete`]
    : ['CLIENT_UNREACHABLE', `cannot connect to ${origin}`];
  const [code, hint] = isDistrusted
    ? [
        'CLIENT_CERTIFICATE_UNTRUSTED',
        'Give the certificate of its authority as an extra CA file, or use the host name it was issued for.',
      ]
    : [
        kind,
        codes.map((one) => hints[one]).find((one) => one !== undefined) ??
          'Check the network, the address and the proxy settings.',
      ];
  // Not the error itself: undici keeps bytes of the answer in some errors, and the answer may repeat the key.
  const cause = Object.assign(new Error(described), { code: codes[0] });
  const failure = new ConnectionFailure(`${message}: ${described}`, { code, hint, cause, sent, context });
  return { error: failure, transient: !isDistrusted };
}
