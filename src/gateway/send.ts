import type { Clock } from '../base/clock.ts';
import { messageOf } from '../base/offsite-error.ts';
import { modelAnswers } from '../bounds/model.ts';
import { retryAfter, waitBefore } from '../client/retry.ts';
import type { UpstreamAnswer, UpstreamRequest } from './answer.ts';
import { type Permit, retryLimits } from './pacing.ts';
import { GatewayRefusal } from './room.ts';
import type { ServedModel } from './served-model.ts';
import { UpstreamFailure } from './upstream-failure.ts';
import { beginningOf } from './upstream-http.ts';
import { type ModelError, readErrorText } from './wires/model-error.ts';

interface SendParts {
  model: ServedModel;
  clock: Clock;
  random: () => number;
  /** Called before every attempt, once it has its permit; throws if the attempt is no longer allowed. */
  admit(): void;
  /** Called for each failed attempt that is followed by another one. */
  failed(reason: string): void;
}

export interface Sent {
  answer: UpstreamAnswer;
  /** Returns the permit, which the answer holds until its body is read. */
  release(): void;
  /** Whether all attempts are used up, so that the client should not retry. */
  exhausted: boolean;
}

/**
 * Sends a request, with retries, until there is an answer to pass on. Retries connection errors, 429 and 5xx
 * after the model's `Retry-After` plus some jitter. Passes on nothing of a failed attempt. Rejects with the
 * last attempt's error if no answer began.
 */
export async function send(parts: SendParts, request: UpstreamRequest, signal: AbortSignal): Promise<Sent> {
  const { model, clock, random, admit, failed } = parts;
  let refusals = 0;
  let couldConnect = false;
  for (let attempt = 1; ; attempt += 1) {
    const last = attempt === retryLimits.attempts;
    const permit = await model.pacing.acquire(signal);
    const isExcused = permit.adapts && refusals < modelAnswers.count.refusals;
    let wait = 0;
    try {
      admit();
      const answer = await model.upstream.send(request, signal);
      couldConnect = true;
      model.presence?.answered();
      const assessment = await assess(answer, { last, lastRefusal: last && !isExcused }, clock);
      if (assessment._tag === 'pass') {
        if (answer.status < 500 && answer.status !== 429) permit.answered();
        const timed = timedBody(assessment.answer, parts, request, permit.completed);
        return { answer: timed, release: permit.release, exhausted: assessment.exhausted };
      }
      failed(assessment.reason);
      if (assessment.shared) {
        wait = permit.refused(assessment.asked, assessment.reason);
        if (isExcused) {
          refusals += 1;
          attempt -= 1;
        }
      } else wait = waitBefore(attempt, assessment.asked, retryLimits, random);
    } catch (error) {
      permit.release();
      if (signal.aborted || error instanceof GatewayRefusal) throw error;
      if (error instanceof UpstreamFailure && error.isPermanent) throw error;
      couldConnect ||= !(error instanceof UpstreamFailure && error.isUnconnected);
      model.presence?.unanswered(couldConnect);
      const missed = absenceOf(error, model);
      if (missed === 0 || (missed === undefined && last)) throw error;
      failed(messageOf(error));
      if (missed === undefined) permit.backOff(undefined, messageOf(error));
      else {
        wait = missed;
        attempt -= 1;
      }
    }
    permit.release();
    if (wait > 0) await clock.sleep(wait, signal);
  }
}

/** How many milliseconds to wait for a server that does not listen; see {@link Presence.missed}. */
function absenceOf(error: unknown, { presence }: ServedModel): number | undefined {
  if (!(error instanceof UpstreamFailure) || !error.nobodyListens) return undefined;
  return presence?.missed(messageOf(error));
}

/**
 * Passes an answer on. When it has succeeded and is complete, reports when its first and last bytes arrived.
 */
function timedBody(
  answer: UpstreamAnswer,
  { clock }: SendParts,
  request: UpstreamRequest,
  completed: Permit['completed'],
): UpstreamAnswer {
  if (completed === undefined || answer.status >= 300) return answer;
  const isStream = String(answer.headers['content-type'] ?? '').startsWith('text/event-stream');
  const stream = isStream ? { requestBytes: request.body.length } : undefined;
  async function* timed(): AsyncGenerator<Uint8Array, void> {
    let firstByteAt: number | undefined;
    for await (const chunk of answer.body) {
      firstByteAt ??= clock.now();
      yield chunk;
    }
    completed?.(stream, firstByteAt ?? clock.now());
  }
  return { ...answer, body: timed() };
}

type Assessment =
  | { _tag: 'pass'; answer: UpstreamAnswer; exhausted: boolean }
  /** `shared`: all requests to this model should wait. */
  | { _tag: 'again'; reason: string; asked: number | undefined; shared: boolean };

/**
 * @param last whether there is no further attempt. `lastRefusal`: whether there is none if the model refuses
 * this one, since some refusals do not count as attempts
 */
async function assess(
  answer: UpstreamAnswer,
  { last, lastRefusal }: { last: boolean; lastRefusal: boolean },
  clock: Clock,
): Promise<Assessment> {
  const { status, headers } = answer;
  if (answer.replayed) return { _tag: 'pass', answer, exhausted: status >= 500 || status === 429 };
  const overloaded = status === 429 || status === 503 || status === 529;
  if (!overloaded && (status < 500 || status === 501)) return { _tag: 'pass', answer, exhausted: false };
  if ((overloaded ? lastRefusal : last) || headers['x-should-retry'] === 'false')
    return { _tag: 'pass', answer, exhausted: true };
  const asked = waitAsked(headers, clock.now());
  if ((asked ?? 0) > retryLimits.longestRetryAfter) return { _tag: 'pass', answer, exhausted: false };

  const { read, whole, discard } = await beginningOf(answer.body);
  if (isFinal(readErrorText(read)))
    return { _tag: 'pass', answer: { ...answer, body: whole() }, exhausted: true };
  await discard();
  return { _tag: 'again', reason: `it answered ${status}`, asked, shared: overloaded };
}

/** A used-up quota is answered with 429 too, but waiting does not help. */
function isFinal({ codes }: ModelError): boolean {
  return codes.includes('insufficient_quota') || codes.includes('billing_hard_limit_reached');
}

/** Some providers also send milliseconds. */
export function waitAsked(headers: UpstreamAnswer['headers'], now: number): number | undefined {
  const [exact, usual, date] = ['retry-after-ms', 'retry-after', 'date'].map(
    (name) => [headers[name]].flat()[0],
  );
  if (exact !== undefined && /^\d+(\.\d+)?$/.test(exact)) return Number(exact);
  return retryAfter({ 'retry-after': usual, date }, now);
}
