import { z } from 'zod';
import type { ChatMessage } from '../gateway/chat/chat.ts';
import type { AskModel } from './judge/ask-model.ts';
import { structuredAnswer } from './structured-answer.ts';

/** The human of a case, played by a model. */
export interface SimulatedUser {
  /**
   * What the user says to the harness's last message, or why they end the conversation. Rejects with an
   * `OffsiteError` where the model does not answer, or not in a form that can be read.
   */
  next(transcript: readonly Utterance[], signal: AbortSignal): Promise<UserTurn>;
}

/** What was said so far, in order; the first is the user's, and is the prompt. */
export interface Utterance {
  from: 'user' | 'harness';
  text: string;
}

export type UserTurn = { says: string } | { ends: 'satisfied' | 'gave-up'; why: string };

const Turn = z.strictObject({
  thought: z.string(),
  action: z.enum(['say', 'satisfied', 'give-up']),
  text: z.string(),
});

/**
 * @param parts.goal what the user wants of the harness; @param parts.prompt who they are and how they talk
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
      // Silence would leave the harness without a message to answer.
      if (action === 'give-up' || text.trim() === '') return { ends: 'gave-up', why: text };
      return { says: text };
    },
  };
}

function systemText({ goal, prompt }: { goal: string; prompt: string }): string {
  return [
    'You play a person who has asked a software agent for something and now reads what it answers. You are not the agent: never do its',
    'work, never write its code, and do not tell it that you are played.',
    prompt === '' ? '' : `Who you are and how you talk:\n${prompt}`,
    `What you want:\n${goal}`,
    'Each message you get is what the agent said to you last. Judge by what it says; you see nothing else. It may be wrong, and it does not',
    'decide when you are satisfied.',
    'Answer with one JSON object: {"thought": "what you make of it, for yourself", "action": "say", "satisfied" or "give-up",',
    '"text": "for say: your words to the agent; else: why the conversation ends"}.',
    'Choose "satisfied" once you have what you want, "give-up" once you no longer expect to get it.',
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

/** The user's own words are the model's, the harness's are told to it. The prompt began the conversation. */
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
