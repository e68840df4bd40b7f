import { z } from 'zod';
import type { ChatMessage } from '../gateway/chat/chat.ts';
import type { AskModel } from './judge/judge.ts';
import { structuredAnswer } from './structured-answer.ts';

/** The human user of a case, played by a model. */
export interface SimulatedUser {
  /**
   * Returns what the user says to the harness's last message, or why the user ends the conversation. Rejects
   * with an `OffsiteError` if the model does not answer, or if its answer cannot be read.
   */
  next(transcript: readonly Utterance[], signal: AbortSignal): Promise<UserTurn>;
}

/** One message of the conversation so far. The first one is the user's prompt. */
export interface Utterance {
  from: 'user' | 'harness';
  text: string;
}

export type UserTurn = { says: string } | { ends: 'satisfied' | 'gave-up'; why: string };

const Turn = z.object({
  thought: z.string(),
  action: z.enum(['say', 'satisfied', 'give-up']),
  text: z.string(),
});

/**
 * @param parts.goal what the user wants from the harness
 * @param parts.prompt who the user is and how they talk
 */
export function openSimulatedUser(parts: { goal: string; prompt: string; chat: AskModel }): SimulatedUser {
  const system = systemText(parts);
  return {
    async next(transcript, signal) {
      const { value } = await structuredAnswer(
        { system, messages: messagesOf(transcript) },
        { name: 'turn', schema: Turn },
        (request) => parts.chat(request, signal),
      );
      const { action, text } = value;
      if (action === 'satisfied') return { ends: 'satisfied', why: text };
      // Without a message, the harness would have nothing to answer.
      if (action === 'give-up' || text.trim() === '') return { ends: 'gave-up', why: text };
      return { says: text };
    },
  };
}

function systemText({ goal, prompt }: { goal: string; prompt: string }): string {
  return [
    'You play a person who has asked a software agent for something and now reads what it answers. ' +
      'You are not the agent: never do its',
    'work, never write its code, and do not tell it that you are played.',
    prompt === '' ? '' : `Who you are and how you talk:\n${prompt}`,
    `What you want:\n${goal}`,
    'Each message you get is what the agent said to you last. Judge by what it says; you see nothing else. ' +
      'It may be wrong, and it does not',
    'decide when you are satisfied.',
    'Answer with one JSON object: {"thought": "what you make of it, for yourself", ' +
      '"action": "say", "satisfied" or "give-up",',
    '"text": "for say: your words to the agent; else: why the conversation ends"}.',
    'Choose "satisfied" once you have what you want, "give-up" once you no longer expect to get it.',
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

/**
 * The conversation as the model sees it: the user's words are the model's own messages, and the harness's
 * words are sent to it. The prompt began the conversation.
 */
function messagesOf(transcript: readonly Utterance[]): ChatMessage[] {
  const opening = {
    from: 'user',
    text: 'The conversation begins. Say what you want from the agent.',
  } as const;
  return [opening, ...transcript.map(messageOf)];
}

function messageOf({ from, text }: Utterance): ChatMessage {
  if (from === 'harness') return { from: 'user', text: text === '' ? '(The agent said nothing.)' : text };
  const turn: z.infer<typeof Turn> = { thought: '', action: 'say', text };
  return { from: 'model', text: JSON.stringify(turn), calls: [] };
}
