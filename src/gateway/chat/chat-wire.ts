import { DocumentTooHeavy, parseForeignJson } from '../../parse-json.ts';
import { isObject, type JsonObject, list, member } from '../wires/dialect.ts';
import type { ChatAnswer, ChatRequest, ToolCall } from './chat.ts';

/** How one wire puts a neutral conversation, in one piece each way. */
export interface ChatWire {
  path: string;
  headers: Record<string, string>;
  write(model: string, request: ChatRequest): JsonObject;
  /** Undefined where the document is no answer of this wire. */
  read(document: unknown, request: ChatRequest): Said | undefined;
}

export type Said = Pick<ChatAnswer, 'text' | 'calls' | 'stopped'>;

/** Arguments as the wires of OpenAI have them: a text that should be a JSON object. Some servers give the object itself. */
export function argumentsOf(given: unknown): ToolCall['arguments'] {
  if (isObject(given)) return given;
  // Nothing at all is how some say that a tool without parameters is called.
  if (given === undefined || given === null || given === '') return {};
  const malformed = typeof given === 'string' ? given : JSON.stringify(given);
  try {
    const value = parseForeignJson(malformed);
    return isObject(value) ? value : { malformed };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof DocumentTooHeavy) return { malformed };
    throw error;
  }
}

/** A call's id; local servers leave it out at times, and then it must be unlike all others of the conversation. */
export function idOf(given: unknown, request: ChatRequest, index: number): string {
  return typeof given === 'string' && given !== '' ? given : `call_${request.messages.length}_${index}`;
}

/** Text as a string, or as a list of parts. */
export function plainText(content: unknown): string {
  if (typeof content === 'string') return content;
  return list(content)
    .map((part) => member(part, 'text'))
    .filter((text) => typeof text === 'string')
    .join('');
}

/** Why an answer stopped, from what the wire's own reason says; calls of a cut answer are not whole. */
export function stoppedBy(facts: {
  refused: boolean;
  cut: boolean;
  calls: readonly ToolCall[];
}): Said['stopped'] {
  if (facts.refused) return 'refused';
  if (facts.cut) return 'length';
  return facts.calls.length > 0 ? 'tools' : 'done';
}

/** A request's fields, without those that have no value. */
export function fields(all: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}
