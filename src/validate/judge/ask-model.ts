import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/offsite-error.ts';
import type { ChatAnswer, ChatRequest } from '../../gateway/chat/chat.ts';

/**
 * Asks a configured model. The request is metered and limited like all of the trial's model traffic. Rejects
 * with an `OffsiteError`.
 */
export type AskModel = (request: ChatRequest, signal: AbortSignal) => Promise<ChatAnswer>;

/** The record of one request to a model: the whole request as JSON, and the answer or error. */
export interface RecordedAsk {
  startedAt: number;
  durationMs: number;
  input: string;
  output?: string | undefined;
  error?: string | undefined;
}

export interface Asking {
  model: AskModel;
  clock: Clock;
  signal: AbortSignal;
  record(ask: RecordedAsk): void;
}

/** Asks a model and records the request, even if it fails. */
export async function askRecorded(request: ChatRequest, asking: Asking): Promise<ChatAnswer> {
  const startedAt = asking.clock.now();
  const record = (found: Pick<RecordedAsk, 'output' | 'error'>) =>
    asking.record({
      startedAt,
      durationMs: asking.clock.now() - startedAt,
      input: JSON.stringify(request, null, 2),
      ...found,
    });
  try {
    const answer = await asking.model(request, asking.signal);
    record({ output: answer.text });
    return answer;
  } catch (error) {
    record({ error: messageOf(error) });
    throw error;
  }
}
