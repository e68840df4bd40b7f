import { hash } from 'node:crypto';
import { modelAnswers } from '../../bounds/model.ts';
import { UnreadableAnswer } from './neutral-answer.ts';
import type { NeutralMessage } from './neutral-request.ts';

/** Gives each tool call of an answer an id that no other call of the conversation has. */
export interface CallIds {
  /** Throws {@link UnreadableAnswer} if the answer has too many calls. */
  of(given: unknown): string;
}

/**
 * Keeps a model's own ids. `used`: those of the conversation. A call that has none, or one that is taken,
 * gets the first free number of the conversation, so that a retry gets the same id. Some servers restart the
 * numbers of calls in each answer, and Gemini's often have no ids.
 */
export function callIds(used: Iterable<string> = []): CallIds {
  const taken = new Set(used);
  let number = 0;
  let calls = 0;
  return {
    of(given) {
      calls += 1;
      if (calls > modelAnswers.count.calls)
        throw new UnreadableAnswer(`the answer has more than ${modelAnswers.count.calls} tool calls`);
      let id = typeof given === 'string' ? given.slice(0, 200) : '';
      while (id === '' || taken.has(id)) {
        id = `call_${number}`;
        number += 1;
      }
      taken.add(id);
      return id;
    },
  };
}

/** The ids of the calls of a conversation. */
export function idsIn(messages: readonly NeutralMessage[]): string[] {
  return messages.flatMap((message) =>
    message.from === 'model' ? message.parts.flatMap((part) => (part.type === 'call' ? part.id : [])) : [],
  );
}

/** An id that every server takes: some refuse other characters, and OpenAI more than 40. */
export function portableId(id: string): string {
  return /^[\w-]{1,40}$/.test(id) ? id : `call_${hash('sha256', id).slice(0, 32)}`;
}
