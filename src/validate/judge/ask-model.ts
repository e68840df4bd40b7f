import type { Clock } from '../../clock.ts';
import type { ChatAnswer, ChatRequest } from '../../gateway/chat/chat.ts';
import { messageOf } from '../../offsite-error.ts';

/**
 * Asks a configured model, metered and limited as all of the trial's model traffic is. Rejects with an
 * `OffsiteError`.
 */
export type AskModel = (request: ChatRequest, signal: AbortSignal) => Promise<ChatAnswer>;

/** One request to a model for the record: the whole of it as JSON, and what came back. */
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

/** Asks, and records it whatever comes of it. */
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
