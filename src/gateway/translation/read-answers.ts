import { isObject, type JsonObject, parsed } from '../wires/lenient.ts';
import type { CallIds } from './call-ids.ts';
import type { NeutralStop } from './neutral-answer.ts';
import type { ModelPart } from './neutral-request.ts';
import { type Stops, stopNamed } from './stops.ts';
import { UnreadableAnswer } from './unreadable-answer.ts';

/** What the readers of all wires share. These functions throw {@link UnreadableAnswer}. */

/** Why an answer ended, by the wire's own names. */
export function stopOf(stops: Stops, reason: unknown): NeutralStop {
  const stop = stopNamed(stops, reason);
  if (stop) return stop;
  throw new UnreadableAnswer(
    `the answer ended for an unknown reason, ${JSON.stringify(reason ?? null).slice(0, 100)}`,
  );
}

/**
 * Most servers give the same reason for the end of an answer with calls, or of a refusal, as for any other.
 */
export function stopWith(stop: NeutralStop, parts: readonly ModelPart[]): NeutralStop {
  const has = (type: ModelPart['type']) => parts.some((part) => part.type === type);
  if (stop !== 'done') return stop;
  return has('refusal') ? 'refused' : has('call') ? 'tools' : 'done';
}

export function nameOfCall(name: unknown): string {
  if (typeof name === 'string' && name !== '') return name;
  throw new UnreadableAnswer('a tool call has no name');
}

/** `arguments`: JSON text. */
export function callPart(
  ids: CallIds,
  call: { id: unknown; name: unknown; arguments: string },
): Extract<ModelPart, { type: 'call' }> {
  return { type: 'call', id: ids.of(call.id), name: nameOfCall(call.name), arguments: call.arguments };
}

/** The data of an event of a stream. */
export function eventObject(data: string): JsonObject {
  const event = parsed(data);
  if (isObject(event)) return event;
  throw new UnreadableAnswer('an event is not a JSON object');
}

export function disorder(type: unknown): UnreadableAnswer {
  return new UnreadableAnswer(`the event ${JSON.stringify(type ?? null).slice(0, 60)} is out of order`);
}

export function incomplete(): UnreadableAnswer {
  return new UnreadableAnswer('the answer ended before it was complete');
}
