import { OffsiteError } from '../../base/offsite-error.ts';
import type { ChatAnswer } from '../../gateway/chat/chat.ts';

/** Throws `MODEL_TOO_SLOW` if an answer does not come in time. */
export async function askWithin(
  ask: (asking: AbortSignal) => Promise<ChatAnswer>,
  { name, within, signal }: { name: string; within: number; signal: AbortSignal },
): Promise<ChatAnswer> {
  const deadline = AbortSignal.timeout(within);
  try {
    return await ask(AbortSignal.any([signal, deadline]));
  } catch (error) {
    if (error === deadline.reason) throw tooSlow(name, within / 1000);
    throw error;
  }
}

function tooSlow(name: string, seconds: number): OffsiteError {
  return new OffsiteError(`the model ${name} did not answer within ${seconds} s`, {
    code: 'MODEL_TOO_SLOW',
    kind: 'infrastructure',
    hint: 'A server may be loading it: try again, or give it longer with --timeout.',
  });
}
