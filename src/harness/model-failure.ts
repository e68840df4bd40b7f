import type { Told } from './turn-record.ts';

/**
 * Providers say in words alone that a conversation has outgrown the model: OpenAI's `context_length_exceeded`
 * and "maximum context length", Anthropic's "prompt is too long", and what CLIs make of them.
 */
const OUTGROWN = /context[_ ](length|window)|maximum context|prompt is too long/i;

/**
 * What a harness says that gave up over an answer of its model. To let a conversation outgrow its model is
 * the agent's failure.
 */
export function gaveUpOver(message: string): Told {
  return { told: OUTGROWN.test(message) ? 'agent-failed' : 'model-failed', message };
}
