import { createHash } from 'node:crypto';
import type { ScriptTurn, ScriptUsage } from '../../suite/script-file.ts';
import type { NeutralAnswer, NeutralUsage } from '../translation/neutral-answer.ts';
import type { ModelPart } from '../translation/neutral-request.ts';
import type { JsonObject } from '../wires/lenient.ts';
import { fields } from '../wires/reply.ts';
import type { Conversation } from './conversation.ts';
import { endingCommand, shellCall } from './shell-tool.ts';

/** A turn that needs something that the request does not offer. */
export interface Impossible {
  impossible: string;
}

/**
 * The answer of a turn to one conversation. Its id is the same for the same conversation, so that a retry
 * gets the lost answer. The arguments of a call may be any text that the script uses instead of JSON.
 */
export function answerOf(
  turn: Pick<ScriptTurn, 'text' | 'run' | 'calls' | 'usage' | 'stop'>,
  conversation: Conversation,
): NeutralAnswer | Impossible {
  const id = conversationKey(conversation).slice(0, 24);
  const ending = turn.calls === undefined ? endingCommand(conversation) : undefined;
  const run = turn.run ?? (ending === undefined ? [] : [ending]);
  const runs = run.map((command) => ({ command, call: shellCall(conversation.tools, command) }));
  const lost = runs.find(({ call }) => call === undefined);
  if (lost) {
    const offered = conversation.tools.map(({ name }) => name).join(', ');
    return {
      impossible:
        `the script runs ${JSON.stringify(lost.command)}, ` +
        `and no tool of the request looks like a shell: ${offered}`,
    };
  }
  const called = [...runs.flatMap(({ call }) => call ?? []), ...(turn.calls ?? [])];
  const calls = called.map(({ tool, arguments: given }, index) => ({
    type: 'call' as const,
    id: `call_${id}_${index}`,
    name: tool,
    arguments: typeof given === 'string' ? given : JSON.stringify(given),
  }));
  const text = turn.text ?? '';
  const written = text.length + calls.reduce((sum, call) => sum + call.arguments.length, 0);
  const said: ModelPart = { type: turn.stop === 'refusal' ? 'refusal' : 'text', text };
  return {
    id,
    model: conversation.model,
    parts: [...(text === '' ? [] : [said]), ...calls],
    stop: turn.stop === 'refusal' ? 'refused' : (turn.stop ?? (calls.length > 0 ? 'tools' : 'done')),
    usage: scriptedUsage(turn.usage ?? {}, conversation, written),
  };
}

/** Identifies one state of one conversation: a retry has the same key. */
export function conversationKey({ wire, model, system, messages, tools }: Conversation): string {
  const whole: JsonObject = { wire, model, system, messages, tools: tools.map(({ name }) => name) };
  return createHash('sha256').update(JSON.stringify(whole)).digest('hex');
}

/** Four characters per token: the number only has to be plausible and the same each time. */
export function estimateTokens(characters: number): number {
  return Math.ceil(characters / 4);
}

function scriptedUsage(usage: ScriptUsage, { wire, length }: Conversation, written: number): NeutralUsage {
  if (usage === 'none') return {};
  const { input = estimateTokens(length), output = estimateTokens(written) } = usage;
  // Qwen Code counts cached tokens of messages only if an answer has both counts.
  const none = wire === 'anthropic-messages' && usage.cacheRead !== undefined ? 0 : undefined;
  const { cacheRead, cacheWrite = none, reasoning } = usage;
  return fields({ input, output, cacheRead, cacheWrite, reasoning });
}
