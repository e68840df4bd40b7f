import type { ChatAnswer, ChatRequest, ToolCall } from '../chat/chat.ts';
import type { NeutralStop } from '../translation/neutral-answer.ts';
import { isObject, type JsonObject, objectsOf, parsed } from './lenient.ts';

/** The content of a model's answer, independent of the wire. */
export type Reply = Pick<ChatAnswer, 'text' | 'calls' | 'stopped'>;

/**
 * Reads arguments as OpenAI's wires write them: a string that should be a JSON object. Some servers send the
 * object itself.
 */
export function argumentsOf(given: unknown): ToolCall['arguments'] {
  if (isObject(given)) return given;
  // Some servers send nothing for a tool without parameters.
  if (given === undefined || given === null || given === '') return {};
  const malformed = typeof given === 'string' ? given : JSON.stringify(given);
  const value = parsed(malformed);
  return isObject(value) ? value : { malformed };
}

/** A call's id. Some local servers leave it out; then this creates one that is new in the conversation. */
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

/** Why an answer stopped. An answer that was cut may have incomplete calls. */
export function stoppedBy(stop: NeutralStop | undefined, calls: readonly ToolCall[]): Reply['stopped'] {
  if (stop === 'refused') return 'refused';
  if (stop === 'length' || stop === 'context') return 'length';
  return calls.length > 0 ? 'tools' : 'done';
}

/** A request's fields, without those that have no value. */
export function fields(all: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}
