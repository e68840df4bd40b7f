import { modelRequests } from '../bounds/sandbox.ts';
import type { UpstreamAnswer } from './answer.ts';
import { openExchange } from './exchange-book.ts';
import { type ExchangeParts, heldBy, type ModelAsk } from './model-ask.ts';
import { GatewayRefusal } from './room.ts';
import { send } from './send.ts';
import { translateAnswer } from './translation/translate-answer.ts';

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
