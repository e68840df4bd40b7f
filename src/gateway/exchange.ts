import { modelRequests } from '../bounds/sandbox.ts';
import { openExchange } from './exchange-book.ts';
import { type ExchangeParts, heldBy, type ModelAsk } from './model-ask.ts';
import { Refusal } from './refusal.ts';
import { send } from './send.ts';
import type { UpstreamAnswer } from './upstream.ts';

/** An answer on its way to its client. Its body must be read, or `signal` aborted. */
export interface PassedAnswer extends UpstreamAnswer {
  /** Asking again will not help: every try that makes sense was made. */
  exhausted: boolean;
}

/**
 * One request to a model, from its budget to its place in the record. `signal` is its client's: when it
 * aborts, so does the upstream's request. Throws a {@link Refusal} where it may not be sent or was answered
 * with a redirect, and the connection's error where no answer began.
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
      throw new Refusal(
        429,
        'TOO_MANY_REQUESTS',
        `the ${ask.role} of this trial has made ${modelRequests.count.exchanges} requests to models, and may make no more`,
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
      throw new Refusal(
        502,
        'MODEL_REDIRECTED',
        `${ask.model.name} answered with a redirect, which is never followed`,
        {
          hint: 'Correct its baseUrl in offsite.yaml.',
        },
      );
    }
    return { ...answer, body: open.passed(answer.body), exhausted };
  } catch (error) {
    open.rejected(error);
    throw error;
  }
}
