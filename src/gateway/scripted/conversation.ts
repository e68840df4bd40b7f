import type { Wire } from '../../suite/model-config.ts';

/** What of a model request matters for choosing and writing an answer, the same for all wires. */
export interface Conversation {
  wire: Wire;
  model: string;
  system: string;
  messages: Message[];
  tools: OfferedTool[];
  streamed: boolean;
  /** openai-chat tells usage in a stream only when asked. */
  usageInStream: boolean;
  /** Characters of the whole request: what its tokens are reckoned from. */
  length: number;
}

/** Messages of the model that follow each other directly are one. */
export type Message =
  | { from: 'user'; text: string }
  | { from: 'model'; text: string; calls: number }
  | { from: 'tool'; text: string };

export interface OfferedTool {
  name: string;
  /** JSON Schema of its arguments. */
  parameters: Record<string, unknown>;
}

/** A JSON object as it came: nothing is known of it. */
export type Json = Record<string, unknown>;

export function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The objects of a list; what is no list has none. */
export function objectsOf(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isJson) : [];
}

/** The text of content as all three wires have it: a string, or a list of parts of which some have a text. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return objectsOf(content)
    .map(({ text, refusal }) => text ?? refusal)
    .filter((text) => typeof text === 'string')
    .join('\n');
}

/** Adds a message of the model, or more of the one before. */
export function addModelMessage(messages: Message[], text: string, calls: number): void {
  const last = messages.at(-1);
  if (last?.from !== 'model') {
    messages.push({ from: 'model', text, calls });
    return;
  }
  last.text = [last.text, text].filter((part) => part !== '').join('\n');
  last.calls += calls;
}

export function toolOf(name: unknown, parameters: unknown): OfferedTool[] {
  return typeof name === 'string' ? [{ name, parameters: isJson(parameters) ? parameters : {} }] : [];
}
