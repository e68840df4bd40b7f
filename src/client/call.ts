import type { Clock } from '../clock.ts';
import { type OperationName, operations } from '../contract/operations.ts';
import { type Deadline, startDeadline } from '../deadline.ts';
import type { KnownKeys } from '../redaction/known-keys.ts';
import type { Address } from './address.ts';
import { oversizedAnswer, type RequestOutcome, readAnswer } from './answer.ts';
import type { Quote } from './api-key.ts';
import { connectionFailure } from './connection-failure.ts';
import type { Connections } from './connections.ts';
import { type CallContext, DeadlineExceeded, UnknownOutcome } from './errors.ts';
import { exchange } from './exchange.ts';
import type { CallOptions, ClientLog, Deadlines, RetryLimits } from './options.ts';
import { type PageParts, PageReader } from './pages/page-reader.ts';
import type { RunParts } from './pages/run-parts.ts';
import { encodeRequest } from './request.ts';
import { type RetryBudget, waitBefore } from './retry.ts';

/** What all calls of a client share. */
export interface CallParts {
  address: Address;
  connections: Connections;
  apiKey: string;
  quote: Quote;
  keys: KnownKeys;
  clock: Clock;
  random: () => number;
  log: ClientLog | undefined;
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
 * @param pageParts which parts of the runs are read, if the answer is a page of runs
 */
export async function call(
  parts: CallParts,
  operation: OperationName,
  request: unknown,
  { signal, deadlineMs }: CallOptions,
  pageParts?: PageParts<RunParts>,
): Promise<unknown> {
  const { clock, limits, budget, closing, log, deadlines } = parts;
  const callMs = deadlineMs ?? (pageParts ? deadlines.page : deadlines.call);
  const body = encodeRequest(operation, request, parts);
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
    log?.debug({ operation, attempt: context.attempt, result: result._tag }, 'asked the Eval Service');
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
    log?.warn(
      { operation, attempt: context.attempt, code: result.error.code, waitMs: wait },
      `asking the Eval Service again: ${result.error.message}`,
    );
    await clock.sleep(wait, whole.signal);
  }
}

type Stopped = { _tag: 'stopped'; error: unknown; acted: boolean };

async function attempt(
  { address, connections, apiKey, quote, clock, deadlines }: CallParts,
  context: CallContext,
  body: string,
  whole: Deadline,
  pageParts: PageParts<RunParts> | undefined,
): Promise<RequestOutcome | Stopped> {
  const { operation } = context;
  using limit = startDeadline(
    clock,
    deadlines.attempt,
    [whole.signal],
    () => new DeadlineExceeded('attempt', deadlines.attempt, context),
  );
  const reader = pageParts && new PageReader(pageParts, quote);
  const exchanged = await exchange(
    operations[operation].repeatable ? connections.kept : connections.fresh,
    {
      origin: address.origin,
      path: address.pathOf(operation),
      headers: {
        authorization: `Bearer ${apiKey}`,
        'content-type': 'application/json',
        accept: 'application/json',
        'accept-encoding': 'identity',
        'user-agent': 'offsite',
      },
      body,
    },
    { signal: limit.signal, reader, progress: reader && limit.renew },
  );
  switch (exchanged._tag) {
    case 'answered':
      return readAnswer(exchanged, clock.now(), quote, context, reader);
    case 'oversized':
      return oversizedAnswer(exchanged, context);
    case 'broken': {
      const { error, transient } = connectionFailure(
        { ...exchanged, origin: address.origin },
        quote,
        context,
      );
      return { _tag: 'failed', error, acted: exchanged.sent, transient };
    }
    case 'stopped': {
      const error = limit.signal.reason;
      if (!limit.expired()) return { _tag: 'stopped', error, acted: exchanged.sent };
      return { _tag: 'failed', error, acted: exchanged.sent, transient: true };
    }
  }
}
