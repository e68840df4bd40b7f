import { messageOf } from '../../base/offsite-error.ts';
import type { ChatAnswer, ChatRequest } from '../chat/chat.ts';
import { ModelRefused } from '../chat/model-errors.ts';

/** Lengths of prompts in tokens, as the model counted them. */
export interface MeasuredContext {
  /** The longest prompt that the model read whole; 0 if none. */
  holds: number;
  /** The shortest that it did not; undefined if the bound was reached first. */
  fails?: { length: number; how: 'refused' | 'cut' } | undefined;
  /** Why the measuring ended early. */
  stopped?: string;
}

/** The first prompt, in tokens. */
const shortest = 1024;
/** How close `holds` and `fails` come to each other, as a share of `fails`. */
const precision = 0.1;
const word = 'heliotrope';

/** How many tokens {@link measureContext} sends at most: doubling up to the bound, then bisection. */
export function mostMeasuringTokens(upTo: number): number {
  let total = 0;
  for (let length = shortest; length < upTo; length *= 2) total += length;
  // The interval is at most half of the length. Each step halves it, until it is a tenth of the length.
  return total + upTo + 3 * upTo;
}

/**
 * Finds the longest prompt that a model reads whole. Each prompt begins with a word that the model must
 * repeat, since some servers cut the beginning of a prompt that is too long and say nothing.
 *
 * @param upTo the longest prompt to send
 */
export async function measureContext(
  ask: (request: ChatRequest) => Promise<ChatAnswer>,
  upTo: number,
  signal: AbortSignal,
): Promise<MeasuredContext> {
  let charactersPerToken = 4;
  let holds = 0;
  let failed: MeasuredContext['fails'];
  const tryLength = async (length: number) => {
    const prompt = promptOf(Math.floor(length * charactersPerToken));
    try {
      const { text, usage } = await ask({ messages: [{ from: 'user', text: prompt }], maxTokens: 512 });
      const counted = usage.inputTokens ?? Math.floor(prompt.length / charactersPerToken);
      const isWhole = text.toLowerCase().includes(word) || counted >= 0.9 * length;
      if (!isWhole) {
        failed = { length, how: 'cut' };
        return;
      }
      if (usage.inputTokens) charactersPerToken = prompt.length / usage.inputTokens;
      holds = Math.max(holds, counted);
    } catch (error) {
      signal.throwIfAborted();
      if (!isTooLong(error)) throw error;
      failed = { length, how: 'refused' };
    }
  };
  try {
    for (let length = Math.min(shortest, upTo); !failed; length = Math.min(2 * length, upTo)) {
      await tryLength(length);
      if (length >= upTo) break;
    }
    for (let step = 0; step < 6 && failed && failed.length - holds > precision * failed.length; step += 1)
      await tryLength(Math.floor((holds + failed.length) / 2));
  } catch (error) {
    signal.throwIfAborted();
    return { holds, fails: failed, stopped: messageOf(error) };
  }
  return { holds, fails: failed };
}

function isTooLong(error: unknown): boolean {
  if (!(error instanceof ModelRefused)) return false;
  return error.code === 'MODEL_CONTEXT_FULL' || [400, 413, 422].includes(error.answer.status);
}

function promptOf(characters: number): string {
  const begin = `The word is ${word}. Remember it. Here is a list of numbers:\n`;
  const end = '\nWhat is the word from the beginning? Answer with it alone.';
  const count = Math.max(0, characters - begin.length - end.length);
  let filler = '';
  for (let number = 1; filler.length < count; number += 1) filler += `${(number * 7919) % 10_000} `;
  return begin + filler.slice(0, count) + end;
}
