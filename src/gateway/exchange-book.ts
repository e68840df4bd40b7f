import { messageOf } from '../offsite-error.ts';
import { copyOf } from './copy.ts';
import type { ModelExchange } from './gateway.ts';
import { type Meter, meterOf, type Reading } from './metering.ts';
import { type ExchangeParts, heldBy, type ModelAsk } from './model-ask.ts';
import { costOf } from './prices.ts';
import { clientGone, Refusal } from './refusal.ts';
import { type ExchangeEntry, type InFlight, newExchange } from './session-record.ts';
import { faultOf, type Outcome } from './standing.ts';
import type { UpstreamAnswer } from './upstream.ts';
import { wireTable } from './wires/wire-table.ts';

/** Hears of the steps of an exchange, in this order. */
interface OpenExchange {
  /**
   * Aborts when the exchange is to be over, with the client's reason or the session's, and when it is before
   * its answer was read.
   */
  signal: AbortSignal;
  /** The request is about to go out. */
  sent(): void;
  failedTry(reason: string): void;
  /** An answer began; `release` gives back its permit for the model. */
  answered(answer: UpstreamAnswer, release: () => void): void;
  /** There is no answer. */
  rejected(error: unknown): void;
  /** The answer's body, as it is to reach the client. */
  passed(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array>;
}

/**
 * Keeps the books of one exchange: it is in the record from now on, and finishes once, by whatever ends it
 * first. Aborts of `client` are passed on to `signal`.
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
  const told: ModelExchange = newExchange(clock, {
    role,
    model: model.name,
    wire: request.wire,
    path: request.path,
    streamed: ask.streamed,
    requestBytes: received.length,
  });
  const entry: ExchangeEntry = { exchange: told, use: 'free', pricesOf: undefined };
  const running: InFlight = {
    kind: 'exchange',
    from: ask.from,
    abort: (reason) => stopping.abort(reason),
    done,
  };
  const follow = () => stopping.abort(client.reason);
  const copy = copyOf(full);
  let meter: Meter | undefined;
  let release: (() => void) | undefined;
  let heldByDecoder = 0;
  let wholeRead = false;
  let finished = false;

  record.add(entry);
  record.begin(running);
  client.addEventListener('abort', follow, { once: true });
  if (client.aborted) follow();
  stopping.signal.addEventListener('abort', () => {
    // Until an answer began, the rejection of the request finishes it.
    if (release) void finish(messageOf(stopping.signal.reason), false);
  });

  const finish = async (trouble: string | undefined, modelFailed: boolean) => {
    if (finished) return;
    finished = true;
    release?.();
    told.finishedAt = clock.now();
    let outcome: Outcome = modelFailed ? 'model' : 'undecided';
    try {
      const reading = meter?.end();
      if (trouble === undefined) outcome = outcomeOf(reading);
      told.trouble = trouble ?? troubleIn(reading);
      told.answeredBy = reading?.answeredBy;
      if (entry.use === 'metered') book(reading);
    } catch (error) {
      // Nothing awaits this: an answer that its reader cannot read must not end more than its own reading.
      told.trouble = `its answer could not be read: ${messageOf(error)}`;
    }
    judge(modelFailed || (trouble === undefined && told.trouble !== undefined), outcome);
    client.removeEventListener('abort', follow);
    // Releases what the upstream still holds. It holds nothing of an answer that was read to its end.
    if (!wholeRead) stopping.abort(new Error('the exchange is over'));
    try {
      if (full) {
        told.requestBody = await keep(received);
        told.responseBody = await keep(copy.bytes());
      }
      observe?.(structuredClone(told), received);
    } catch (error) {
      told.trouble ??= `its bodies were not kept: ${messageOf(error)}`;
    } finally {
      hold[Symbol.dispose]();
      record.end(running);
      settle();
    }
  };

  const book = (reading: Reading | undefined) => {
    const usage = reading?.usage ?? {};
    const { prices } = model.config;
    const costUsd = costOf(usage, prices);
    told.usage = costUsd === undefined ? usage : { ...usage, costUsd };
    entry.pricesOf = prices?.date;
    // A client could cut every answer just before its usage. So budgets, and only budgets, count an estimate.
    const inputTokens = usage.inputTokens ?? Math.ceil(received.length / 4);
    const outputTokens = usage.outputTokens ?? (reading?.events || Math.ceil(told.responseBytes / 4));
    const usd = costUsd ?? costOf({ ...usage, inputTokens, outputTokens }, prices) ?? 0;
    budgets.of(role).spend({ tokens: inputTokens + outputTokens, usd });
  };

  /** What an answer that came to its end, or was cut, says of itself. */
  const troubleIn = (reading: Reading | undefined): string | undefined => {
    const status = told.status ?? 0;
    const said = reading?.failure === undefined ? '' : `: ${model.redaction.text(reading.failure)}`;
    if (status >= 400) return `answered ${status}${said}`;
    if (said) return `answered with an error${said}`;
    return reading?.complete === false && ask.purpose === 'answer'
      ? 'the answer ended before it was complete'
      : undefined;
  };

  /** Who is responsible for the outcome of an answer that came to its end. */
  const outcomeOf = (reading: Reading | undefined): Outcome => {
    const status = told.status ?? 0;
    if (status >= 400) return faultOf(status);
    if (reading?.failure !== undefined) return reading.overloaded ? 'model' : 'request';
    return reading?.complete === false ? 'model' : 'answered';
  };

  const judge = (failed: boolean, outcome: Outcome) => {
    const message = `${model.name}: ${told.trouble}`;
    const { status = 0, responseBytes } = told;
    // An agent cannot act on a count of tokens, and many servers have none.
    if (ask.purpose === 'answer') {
      record.standings.note(role, outcome, status < 300 && responseBytes > 0, message);
    }
    if (failed) record.failures.set(role, { at: told.finishedAt, message });
    else if (told.trouble === undefined) record.failures.delete(role);
  };

  const take = (bytes: Buffer) => {
    told.firstByteAt ??= clock.now();
    told.responseBytes += bytes.length;
    meter?.chunk(bytes);
    copy.add(bytes);
    // Who asks in this process reads the whole answer before it does anything with it.
    const read = ask.from === 'process' ? told.responseBytes : 0;
    return hold.resize(
      heldBy(ask) + heldByDecoder + copy.size + (meter?.held() ?? 0) + read,
      stopping.signal,
    );
  };

  return {
    signal: stopping.signal,
    sent() {
      if (ask.purpose === 'answer') entry.use = 'metered';
    },
    failedTry(reason) {
      // A connection that failed, or an error for an answer: as far as anybody can tell it cost nothing.
      entry.use = 'free';
      told.failedTries.push({ at: clock.now(), reason });
    },
    answered({ status, headers, decoderBytes = 0 }, releasePermit) {
      heldByDecoder = decoderBytes;
      release = releasePermit;
      told.status = status;
      if (status >= 300) entry.use = 'free';
      meter = meterOf(wireTable[request.wire].answers, String(headers['content-type'] ?? ''));
    },
    rejected(error) {
      const { aborted, reason } = stopping.signal;
      if (aborted) {
        if (reason instanceof Refusal) told.status = reason.status;
        void finish(messageOf(reason), false);
      } else {
        const refusal = error instanceof Refusal ? error : undefined;
        told.status = refusal?.status ?? 502;
        entry.use = refusal && [400, 429, 503].includes(refusal.status) ? 'refused' : 'free';
        // A lack of room here says nothing about the model.
        void finish(messageOf(error), told.status >= 500 && refusal?.code !== 'NO_ROOM');
      }
    },
    async *passed(body) {
      const redacted = model.redaction.stream();
      try {
        for await (const chunk of body) {
          const bytes = redacted.push(chunk);
          if (bytes.length === 0) continue;
          const room = take(bytes);
          if (room) await room;
          yield bytes;
        }
        const rest = redacted.end();
        if (rest.length > 0) {
          await take(rest);
          yield rest;
        }
        wholeRead = true;
        void finish(undefined, false);
      } catch (error) {
        if (!stopping.signal.aborted) void finish(messageOf(error), !(error instanceof Refusal));
        throw error;
      } finally {
        // Its client has gone, or this process has ended it.
        if (!finished) void finish(messageOf(stopping.signal.reason ?? clientGone()), false);
      }
    },
  };
}
