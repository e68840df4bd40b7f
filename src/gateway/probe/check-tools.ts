import { messageOf } from '../../base/offsite-error.ts';
import { serverFacts } from '../../bounds/model.ts';
import type { ChatAnswer, ChatMessage, ChatRequest, ToolCall } from '../chat/chat.ts';
import { member } from '../wires/lenient.ts';

export interface CheckedTools {
  /** `none`: it called no tool. `unused`: it called one, and did not use the result. */
  state: 'works' | 'unused' | 'none' | 'malformed' | 'failed';
  /** Whether it made several calls in one answer. */
  parallel: boolean;
  reason?: string;
}

/** Codes that no model can guess. */
const codes: Readonly<Record<string, string>> = { Lima: 'K7-4193', Oslo: 'Q2-8806' };

const tool = {
  name: 'lookup_code',
  description: 'Returns the secret code of a city.',
  // The tools of harnesses have these members too, and some servers refuse them.
  parameters: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: { city: { type: 'string', description: 'the name of the city' } },
    required: ['city'],
    additionalProperties: false,
  },
};

/**
 * A call of another model, and what the user says after its result: a conversation of a harness has both, and
 * some servers refuse ids of other forms, or a user at this place.
 */
export const earlierCall: readonly ChatMessage[] = [
  { from: 'user', text: 'Look up the secret code of Rome.' },
  {
    from: 'model',
    text: '',
    calls: [{ id: 'call_offsite_check_0', name: tool.name, arguments: { city: 'Rome' } }],
  },
  { from: 'tool', callId: 'call_offsite_check_0', text: 'no such city', failed: false },
];

/**
 * Lets a model call a tool for real, and sends the results back. Throws only the signal's reason.
 *
 * @param earlier what comes before in the conversation
 */
export async function checkTools(
  ask: (request: ChatRequest) => Promise<ChatAnswer>,
  signal: AbortSignal,
  earlier: readonly ChatMessage[] = [],
): Promise<CheckedTools> {
  const messages: ChatMessage[] = [
    ...earlier,
    {
      from: 'user',
      text:
        'What are the secret codes of Lima and of Oslo? Call the tool lookup_code once for each city, both ' +
        'at the same time. Then answer with the two codes.',
    },
  ];
  const made: ToolCall[] = [];
  let parallel = false;
  try {
    for (let answers = 0; answers < serverFacts.count.answers; answers += 1) {
      const { text, calls } = await ask({ messages, tools: [tool], maxTokens: 1024 });
      if (calls.length === 0) return { ...ended(text, made), parallel };
      made.push(...calls);
      if (made.some(isMalformed))
        return { state: 'malformed', parallel, reason: JSON.stringify(made.find(isMalformed)) };
      parallel ||= calls.length > 1;
      messages.push({ from: 'model', text, calls });
      for (const call of calls)
        messages.push({ from: 'tool', callId: call.id, text: resultOf(call), failed: false });
    }
    return {
      state: 'unused',
      parallel,
      reason: `it still called tools in answer ${serverFacts.count.answers}`,
    };
  } catch (error) {
    signal.throwIfAborted();
    return { state: 'failed', parallel, reason: messageOf(error) };
  }
}

function ended(text: string, made: readonly ToolCall[]): Pick<CheckedTools, 'state' | 'reason'> {
  if (made.length === 0) return { state: 'none', reason: `it answered: ${text}` };
  const asked = Object.values(codes).filter((code) => made.some((call) => resultOf(call) === code));
  const isUsed = asked.length > 0 && asked.every((code) => text.includes(code));
  return isUsed ? { state: 'works' } : { state: 'unused', reason: `it answered: ${text}` };
}

function isMalformed(call: ToolCall): boolean {
  return call.name !== tool.name || typeof member(call.arguments, 'city') !== 'string';
}

function resultOf({ arguments: given }: ToolCall): string {
  const city = Object.keys(codes).find((name) => String(member(given, 'city')).includes(name));
  return (city !== undefined && codes[city]) || 'no such city';
}
