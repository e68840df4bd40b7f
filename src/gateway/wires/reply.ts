import type { ChatAnswer, ChatRequest, ToolCall } from '../chat/chat.ts';
import { isObject, type JsonObject, objectsOf, parsed } from './lenient.ts';

/** What a model says in one answer, in no wire's own form. */
export type Reply = Pick<ChatAnswer, 'text' | 'calls' | 'stopped'>;

/**
 * Arguments as OpenAI's wires write them: a text that should be a JSON object. Some servers give the object
 * itself.
 */
export function argumentsOf(given: unknown): ToolCall['arguments'] {
  if (isObject(given)) return given;
  // By nothing at all some servers call a tool without parameters.
  if (given === undefined || given === null || given === '') return {};
  const malformed = typeof given === 'string' ? given : JSON.stringify(given);
  const value = parsed(malformed);
  return isObject(value) ? value : { malformed };
}

/** A call's id. Some local servers leave it out; then it gets one that the conversation does not have yet. */
export function idOf(given: unknown, request: ChatRequest, index: number): string {
  return typeof given === 'string' && given !== '' ? given : `call_${request.messages.length}_${index}`;
}

/** Text as a string, or as a list of parts. */
export function plainText(content: unknown): string {
  if (typeof content === 'string') return content;
  return objectsOf(content)
    .map(({ text }) => text)
    .filter((text) => typeof text === 'string')
    .join('');
}

/** Why an answer stopped, by the wire's own reason. The calls of an answer that was cut are not whole. */
export function stoppedBy(facts: {
  refused: boolean;
  cut: boolean;
  calls: readonly ToolCall[];
}): Reply['stopped'] {
  if (facts.refused) return 'refused';
  if (facts.cut) return 'length';
  return facts.calls.length > 0 ? 'tools' : 'done';
}

/** A request's fields, without those that have no value. */
export function fields(all: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}
