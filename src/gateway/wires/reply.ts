import type { ToolCall } from '../chat/chat.ts';
import type { Losses } from '../translation/losses.ts';
import { isObject, type JsonObject, objectsOf, parsed } from './lenient.ts';

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

/** The same for a wire that carries only objects. Any other arguments are wrapped, which is a loss. */
export function argumentsObject(given: string, losses: Losses): JsonObject {
  const read = argumentsOf(given);
  if (read.malformed === given) losses.record('answer.arguments', 'answer detail');
  return read;
}

/** Text as a string, or as a list of parts. */
export function plainText(content: unknown): string {
  if (typeof content === 'string') return content;
  return objectsOf(content)
    .map(({ text }) => text)
    .filter((text) => typeof text === 'string')
    .join('');
}

/** A request's fields, without those that have no value. */
export function fields(all: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}
