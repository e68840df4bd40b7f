import type { Clock } from '../base/clock.ts';
import { modelAnswers } from '../bounds/model.ts';
import { modelRequests } from '../bounds/sandbox.ts';
import type { UpstreamRequest } from './answer.ts';
import type { RoleBudgets } from './budget.ts';
import type { ModelRole, SessionRequest } from './gateway.ts';
import type { Hold } from './room.ts';
import type { ServedModel } from './served-model.ts';
import type { SessionRecord } from './session-record.ts';
import type { TranslatedRequest } from './translation/translate-answer.ts';

export interface ExchangeParts {
  record: SessionRecord;
  budgets: RoleBudgets;
  clock: Clock;
  random: () => number;
  /** Names the trial. */
  trial: string;
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
