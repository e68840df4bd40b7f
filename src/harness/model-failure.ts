import type { TurnStatus } from './turn-record.ts';

/**
 * Providers report only in words that a conversation is too long for the model: OpenAI's
 * `context_length_exceeded` and "maximum context length", Anthropic's "prompt is too long", and the CLIs'
 * versions of these.
 */
export function saysTooLong(message: string): boolean {
  return /context[_ ](length|window|size)|maximum context|prompt is too long/i.test(message);
}

/**
 * The status of a harness that gave up after an error of its model. If the conversation became too long for
 * the model, that is the agent's failure.
 */
export function modelFailure(message: string): TurnStatus {
  return { kind: saysTooLong(message) ? 'agent-failed' : 'model-failed', message };
}
