import { Losses } from '../translation/losses.ts';
import { eventsOf, type NeutralAnswer } from '../translation/neutral-answer.ts';
import type { Asked } from '../translation/wire-translation.ts';
import { piecesOf, type WireEvent } from '../wires/wire-event.ts';
import { wireTable } from '../wires/wire-table.ts';
import type { Conversation } from './conversation.ts';

/** What the writers of answers need to know of a conversation. `at`: epoch milliseconds. */
function askedOf(answer: NeutralAnswer, conversation: Conversation, at: number): Asked {
  const { wire, model, streamed } = conversation;
  const isTold = Object.keys(answer.usage).length > 0 && (conversation.usageAsked || !streamed);
  return {
    request: { model, streamed, usageAsked: isTold, messages: [], tools: [], stop: [] },
    at,
    losses: new Losses('lenient', wire),
  };
}

/** An answer of this process as one document, as a translated answer is written. */
export function scriptedDocument(answer: NeutralAnswer, conversation: Conversation, at: number): Buffer {
  const { translation } = wireTable[conversation.wire];
  return Buffer.from(JSON.stringify(translation.writeAnswer(answer, askedOf(answer, conversation, at))));
}

/** The same as the events of a stream. `characters`: of text or arguments in one event. */
export function* scriptedEvents(
  answer: NeutralAnswer,
  conversation: Conversation,
  { characters, at }: { characters: number; at: number },
): Generator<WireEvent> {
  let events: WireEvent[] = [];
  const { translation } = wireTable[conversation.wire];
  const writer = translation.writeStream(askedOf(answer, conversation, at), (event) => events.push(event));
  for (const step of eventsOf(answer)) {
    const isText = step.type === 'text';
    const pieces =
      'text' in step ? piecesOf(step.text, characters).map((text) => ({ ...step, text })) : [step];
    for (const piece of pieces) writer.take(piece);
    // The first piece of a part comes after the beginning of the part.
    yield* events.map((event) => ({ ...event, isText: isText && event === events.at(-1) }));
    events = [];
  }
}
