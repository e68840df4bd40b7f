import { ByteStore } from '../base/byte-store.ts';
import type { Clock } from '../base/clock.ts';
import { messageOf } from '../base/offsite-error.ts';
import { modelAnswers } from '../bounds/model.ts';
import { modelRequests } from '../bounds/sandbox.ts';
import type { Usage } from '../contract/report.ts';
import type { Prices } from '../suite/model-config.ts';
import { errorForClient, type UpstreamAnswer, type UpstreamRequest } from './answer.ts';
import type { RoleBudgets } from './budget.ts';
import type { ModelExchange, ModelRole, SessionRequest } from './gateway.ts';
import { type Meter, meterOf, type Reading } from './metering.ts';
import { clientGone, GatewayRefusal, type Hold } from './room.ts';
import { send } from './send.ts';
import type { ServedModel } from './served-model.ts';
import {
  type ExchangeEntry,
  faultOf,
  type InFlight,
  newExchange,
  type Outcome,
  type SessionRecord,
} from './session-record.ts';
import type { Transcoder } from './translation/answer-stream.ts';
import { incomplete } from './translation/read-answers.ts';
import {
  exchangeTranslationOf,
  type TranslatedRequest,
  translateAnswer,
} from './translation/translate-answer.ts';
import { UpstreamFailure } from './upstream-failure.ts';

/** An answer for the client. Read its body, or abort `signal`. */
export interface PassedAnswer extends UpstreamAnswer {
  /** Whether the client should not retry: all useful attempts were made. */
  exhausted: boolean;
  /** Whether the head waits for the first bytes of the body. */
  headWaits?: boolean | undefined;
}

/**
 * Makes one request to a model: checks its budget, sends it and records it. `signal` is the client's: if it
 * aborts, so does the upstream request. Throws a {@link GatewayRefusal} if the request may not be sent or the
 * answer is a redirect, and the connection's error if no answer began.
 */
export async function exchange(
  parts: ExchangeParts,
  ask: ModelAsk,
  signal: AbortSignal,
): Promise<PassedAnswer> {
  const budgets = parts.budgets.of(ask.role);
  const open = openExchange(parts, ask, signal);
  try {
    if (parts.record.isFull(ask.role)) {
      throw new GatewayRefusal(
        429,
        'TOO_MANY_REQUESTS',
        `the ${ask.role} of this trial has made ${modelRequests.count.exchanges} model requests, the limit`,
      );
    }
    budgets.begin();
    await ask.hold.resize(heldBy(ask), open.signal);
    const { answer, release, exhausted } = await send(
      {
        ...parts,
        model: ask.model,
        admit() {
          budgets.check();
          open.sent();
        },
        failed: open.failedTry,
      },
      ask.request,
      open.signal,
    );
    open.answered(answer, release);
    open.signal.throwIfAborted();
    if (answer.status >= 300 && answer.status < 400) {
      throw new GatewayRefusal(
        502,
        'MODEL_REDIRECTED',
        `${ask.model.name} answered with a redirect, which is never followed`,
        {
          hint: 'Correct its baseUrl in offsite.yaml.',
        },
      );
    }
    if (!ask.translated) return { ...answer, body: open.passed(answer.body), exhausted };
    const { transcoder, ...head } = translateAnswer(answer, ask.translated, ask.purpose, parts.clock.now());
    return { ...head, body: open.passed(answer.body, transcoder), exhausted };
  } catch (error) {
    open.rejected(error);
    throw error;
  }
}

/** Receives the steps of an exchange, in this order. */
interface OpenExchange {
  /**
   * Aborts when the exchange must end, with the client's or the session's reason. Also aborts when the
   * exchange is over before its answer was read to the end.
   */
  signal: AbortSignal;
  /** The request is about to be sent. */
  sent(): void;
  failedTry(reason: string): void;
  /** An answer began; `release` returns its permit for the model. */
  answered(answer: UpstreamAnswer, release: () => void): void;
  /** There is no answer. */
  rejected(error: unknown): void;
  /** Passes on the answer's body for the client, translated by the transcoder, and reads it on the way. */
  passed(body: AsyncIterable<Uint8Array>, transcoder?: Transcoder): AsyncGenerator<Uint8Array>;
}

/**
 * Records one exchange. It is in the record from now on, and finishes once, with whatever ends it first. An
 * abort of `client` also aborts `signal`.
 */
export function openExchange(
  { record, budgets, clock, keep, observe }: ExchangeParts,
  ask: ModelAsk,
  client: AbortSignal,
): OpenExchange {
  const { role, model, request, received, hold } = ask;
  const full = model.config.record === 'full';
  const stopping = new AbortController();
  const { promise: done, resolve: settle } = Promise.withResolvers<void>();
  const exchange: ModelExchange = newExchange(clock, {
    role,
    model: model.name,
    wire: request.wire,
    path: request.path,
    streamed: ask.streamed,
    requestBytes: received.length,
  });
  const entry: ExchangeEntry = { exchange, use: 'free', pricesOf: undefined };
  const running: InFlight = {
    kind: 'exchange',
    from: ask.from,
    abort: (reason) => stopping.abort(reason),
    done,
  };
  const follow = () => stopping.abort(client.reason);
  /** The answer, if the record keeps it. */
  const copy = new ByteStore();
  let meter: Meter | undefined;
  let translation: Transcoder | undefined;
  let release: (() => void) | undefined;
  let heldByDecoder = 0;
  let wholeRead = false;
  let finished = false;
  const { translated } = ask;
  if (translated) exchange.translation = exchangeTranslationOf(translated);

  record.add(entry);
  record.begin(running);
  client.addEventListener('abort', follow, { once: true });
  if (client.aborted) follow();
  stopping.signal.addEventListener('abort', () => {
    // Before an answer begins, the request's rejection finishes the exchange.
    if (release) void finish(messageOf(stopping.signal.reason), false);
  });

  const finish = async (given: string | undefined, modelFailed: boolean) => {
    let problem = given;
    if (finished) return;
    finished = true;
    release?.();
    exchange.finishedAt = clock.now();
    if (translated) exchange.translation = exchangeTranslationOf(translated);
    let outcome: Outcome = modelFailed ? 'model' : 'undecided';
    try {
      const reading = meter?.end();
      // Clients leave once the answer says that it is complete, before its connection ends.
      if (client.aborted && reading?.complete && reading.failure === undefined) problem = undefined;
      if (problem === undefined) outcome = outcomeOf(reading);
      exchange.failure = problem ?? problemIn(reading);
      exchange.answeredBy = reading?.answeredBy;
      if (entry.use === 'metered') book(reading);
    } catch (error) {
      // Nothing awaits this, so an error while reading an answer must not escape.
      exchange.failure = `its answer could not be read: ${messageOf(error)}`;
    }
    note(modelFailed || (problem === undefined && exchange.failure !== undefined), outcome);
    client.removeEventListener('abort', follow);
    // Releases what the upstream still holds: nothing, if the answer was read to its end.
    if (!wholeRead) stopping.abort(new Error('the exchange is over'));
    try {
      if (full) {
        exchange.requestBody = await keep(received);
        const { recorded } = modelAnswers.bytes;
        const cut = `\n[cut: ${recorded} of ${exchange.responseBytes} bytes]`;
        if (exchange.responseBytes > recorded) copy.add(Buffer.from(cut));
        exchange.responseBody = await keep(copy.take());
      }
      observe?.(structuredClone(exchange), received);
    } catch (error) {
      exchange.failure ??= `its bodies were not kept: ${messageOf(error)}`;
    } finally {
      hold[Symbol.dispose]();
      record.end(running);
      settle();
    }
  };

  const book = (reading: Reading | undefined) => {
    const usage = reading?.usage ?? {};
    const { prices } = model.config;
    if (exchange.replayed) {
      // The answer was paid for when it was recorded.
      exchange.usage = { ...usage, costUsd: 0 };
      return;
    }
    const costUsd = costOf(usage, prices);
    exchange.usage = costUsd === undefined ? usage : { ...usage, costUsd };
    entry.pricesOf = prices?.date;
    // A client could cut every answer just before its usage. So budgets, but nothing else, count an estimate.
    const inputTokens = usage.inputTokens ?? Math.ceil(received.length / 4);
    const outputTokens = usage.outputTokens ?? (reading?.events || Math.ceil(exchange.responseBytes / 4));
    const usd = costUsd ?? costOf({ ...usage, inputTokens, outputTokens }, prices) ?? 0;
    const isPartial = 'baseUrl' in model.config && !prices;
    budgets.of(role).spend({ tokens: inputTokens + outputTokens, usd, ...(isPartial && { isPartial }) });
  };

  /** The problem that an answer itself reports, whether it is complete or was cut. */
  const problemIn = (reading: Reading | undefined): string | undefined => {
    const status = exchange.status ?? 0;
    const said = reading?.failure === undefined ? '' : `: ${model.redaction.text(reading.failure)}`;
    if (status >= 400) return `answered ${status}${said}`;
    if (said) return `answered with an error${said}`;
    if (reading?.complete !== false || ask.purpose !== 'answer') return undefined;
    return model.redaction.text(reading.problem ?? incomplete().message);
  };

  /** The outcome of a complete answer, which shows who is responsible for it. */
  const outcomeOf = (reading: Reading | undefined): Outcome => {
    const status = exchange.status ?? 0;
    if (status >= 400) return faultOf(status);
    if (reading?.failure !== undefined) return reading.fault;
    return reading?.complete === false ? 'model' : 'answered';
  };

  const note = (failed: boolean, outcome: Outcome) => {
    const message = `${model.name}: ${exchange.failure}`;
    const { status = 0, responseBytes } = exchange;
    // An agent cannot act on a count of tokens, and many servers do not support counting.
    if (ask.purpose === 'answer') {
      record.standings.note(role, outcome, status < 300 && responseBytes > 0, message);
    }
    if (failed) record.failures.set(role, { at: exchange.finishedAt, message });
    else if (exchange.failure === undefined) record.failures.delete(role);
  };

  /** Call it after the translation has read these bytes: the meter may share its reading. */
  const take = (bytes: Buffer) => {
    exchange.firstByteAt ??= clock.now();
    exchange.responseBytes += bytes.length;
    meter?.chunk(bytes);
    if (full) copy.add(bytes.subarray(0, modelAnswers.bytes.recorded - copy.size));
    // Callers in this process read the whole answer before they use it.
    const read = ask.from === 'process' ? exchange.responseBytes : 0;
    return hold.resize(
      heldBy(ask) + heldByDecoder + copy.size + (meter?.held() ?? 0) + (translation?.held() ?? 0) + read,
      stopping.signal,
    );
  };

  return {
    signal: stopping.signal,
    sent() {
      if (ask.purpose === 'answer') entry.use = 'metered';
    },
    failedTry(reason) {
      // The connection failed, or the answer is an error: as far as we know it cost nothing.
      entry.use = 'free';
      exchange.failedTries.push({ at: clock.now(), reason });
    },
    answered(
      { status, headers, decoderBytes = 0, replayed, leftOut, unscripted, refusals = [] },
      releasePermit,
    ) {
      for (const reason of refusals)
        exchange.failedTries.push({ at: clock.now(), reason: model.redaction.text(reason) });
      if (leftOut)
        exchange.losses = leftOut.map((path) => ({ path, kind: 'refused by the server', times: 1 }));
      heldByDecoder = decoderBytes;
      release = releasePermit;
      exchange.status = status;
      if (replayed) exchange.replayed = replayed;
      if (unscripted) exchange.unscripted = true;
      if (status >= 300) entry.use = 'free';
      const type = String(headers['content-type'] ?? '');
      meter = meterOf(request.wire, status, type, () => translation?.stream?.());
    },
    rejected(error) {
      const { aborted, reason } = stopping.signal;
      if (aborted) {
        if (reason instanceof GatewayRefusal) exchange.status = reason.status;
        void finish(messageOf(reason), false);
      } else {
        const refusal = error instanceof GatewayRefusal ? error : undefined;
        exchange.status = refusal?.status ?? 502;
        entry.use = refusal && [400, 429, 503].includes(refusal.status) ? 'refused' : 'free';
        // A lack of room in this process says nothing about the model.
        // What to do about a lost connection depends on its error, so it is said here.
        const words = error instanceof UpstreamFailure ? errorForClient(error).message : messageOf(error);
        void finish(words, exchange.status >= 500 && refusal?.code !== 'NO_ROOM');
      }
    },
    async *passed(body, transcoder) {
      translation = transcoder;
      const redacted = model.redaction.stream();
      try {
        try {
          for await (const chunk of body) {
            const bytes = redacted.push(chunk);
            if (bytes.length === 0) continue;
            const out = transcoder ? transcoder.push(bytes) : [bytes];
            const room = take(bytes);
            if (room) await room;
            yield* out;
            throwIfBroken(transcoder);
          }
        } catch (error) {
          // As official clients do, reads past the end that an answer says only while its connection lasts.
          if (stopping.signal.aborted || !transcoder?.isOver?.()) throw error;
        }
        const rest = redacted.end();
        const pushed = transcoder ? transcoder.push(rest) : [rest];
        if (rest.length > 0) await take(rest);
        for (const last of [...pushed, ...(transcoder?.end() ?? [])]) if (last.length > 0) yield last;
        throwIfBroken(transcoder);
        wholeRead = true;
        void finish(undefined, false);
      } catch (error) {
        if (!stopping.signal.aborted) void finish(messageOf(error), !(error instanceof GatewayRefusal));
        throw error;
      } finally {
        // The client has disconnected, or this process ended the exchange.
        if (!finished) void finish(messageOf(stopping.signal.reason ?? clientGone()), false);
      }
    },
  };
}

function throwIfBroken(transcoder: Transcoder | undefined): void {
  const problem = transcoder?.problem();
  if (problem) throw problem;
}

/**
 * USD for one answer; undefined if a price or a number of tokens is unknown. Input tokens include cached
 * ones, which have a separate price if one is set. If a wire reports no cached tokens, none are priced.
 */
export function costOf(usage: Usage, prices: Prices | undefined): number | undefined {
  const { inputTokens, outputTokens, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage;
  if (!prices || inputTokens === undefined || outputTokens === undefined) return undefined;
  const plain = Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens);
  const millionths =
    plain * prices.input +
    cacheReadTokens * (prices.cacheRead ?? prices.input) +
    cacheWriteTokens * (prices.cacheWrite ?? prices.input) +
    outputTokens * prices.output;
  return millionths / 1_000_000;
}

export interface ExchangeParts {
  record: SessionRecord;
  budgets: RoleBudgets;
  clock: Clock;
  random: () => number;
  keep: SessionRequest['keep'];
  observe: SessionRequest['observe'];
}

export interface ModelAsk {
  from: 'sandbox' | 'process';
  role: ModelRole;
  model: ServedModel;
  purpose: 'answer' | 'count';
  streamed: boolean;
  request: UpstreamRequest;
  /** The body as its client sent it, for the record. */
  received: Buffer;
  /** What it holds of this process's memory; released at the end. */
  hold: Hold;
  /** Bytes of the heap that the body needs if it is kept parsed. */
  weight: number;
  /** Set if the client speaks another wire than the model. Then `received` is the translated body. */
  translated?: TranslatedRequest | undefined;
}

/** Bytes that an exchange holds, apart from its answer. */
export function heldBy({ request, received, model, weight }: ModelAsk): number {
  const bodies = received.length + (request.body === received ? 0 : request.body.length);
  // A scripted model keeps the conversation while it waits.
  return (
    bodies +
    ('scripted' in model.config ? weight : 0) +
    modelRequests.bytes.answerAhead +
    modelAnswers.bytes.waiting
  );
}
