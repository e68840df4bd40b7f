import type { Wire } from '../../suite/model-config.ts';
import { Losses } from '../translation/losses.ts';
import { eventsOf, type NeutralAnswer } from '../translation/neutral-answer.ts';
import type { NeutralMessage, NeutralTool } from '../translation/neutral-request.ts';
import { isObject, type JsonObject, piecesOf, type WireEvent } from '../wires/lenient.ts';
import type { Asked, PathTarget } from '../wires/wire-descriptor.ts';
import { wireTable } from '../wires/wire-table.ts';

/** The parts of a model request that matter for choosing an answer, in the same form for all wires. */
export interface Conversation {
  wire: Wire;
  model: string;
  system: string;
  messages: Message[];
  tools: NeutralTool[];
  streamed: boolean;
  /** Whether it asks for usage in a stream. */
  usageAsked: boolean;
  /** Characters of the whole request; its tokens are estimated from this. */
  length: number;
}

/** Consecutive messages of the model count as one. */
export type Message =
  | { from: 'user'; text: string }
  | { from: 'model'; text: string; calls: number }
  | { from: 'tool'; text: string };

/**
 * Reads the body of a request in any wire. `length`: its characters. `inPath`: what its path says, if the
 * wire's bodies do not.
 */
export function readConversation(
  wire: Wire,
  body: JsonObject,
  length: number,
  inPath?: PathTarget,
): Conversation {
  const { translation, requests } = wireTable[wire];
  const { usageOption } = requests;
  const losses = new Losses('partial', wire);
  const messages = translation.readMessages(body, losses);
  const system = messages.flatMap((message) => (message.from === 'system' ? message.text : []));
  const options = usageOption && body[usageOption.member];
  return {
    wire,
    model: inPath?.model ?? (typeof body.model === 'string' ? body.model : ''),
    system: textOf(system.filter((text) => text !== '')),
    messages: messages.reduce<Message[]>(addMessage, []),
    tools: translation.readTools(body, losses),
    streamed: inPath?.streamed ?? body.stream === true,
    usageAsked: !usageOption || (isObject(options) && options[usageOption.option] === true),
    length,
  };
}

function addMessage(messages: Message[], message: NeutralMessage): Message[] {
  if (message.from === 'system') return messages;
  const { from } = message;
  const texts = message.parts.flatMap((part) =>
    part.type === 'text' || part.type === 'refusal' ? part.text : [],
  );
  if (from === 'tool') messages.push({ from, text: textOf(texts) });
  else if (from === 'model')
    addModelMessage(messages, textOf(texts), message.parts.filter(({ type }) => type === 'call').length);
  else {
    // Claude Code adds its own reminders to tool results; they are not from the user.
    const isBeside = messages.at(-1)?.from === 'tool';
    const text = textOf(isBeside ? texts.filter((one) => !isReminder(one)) : texts);
    if (!isBeside || text !== '') messages.push({ from, text });
  }
  return messages;
}

/** Adds a message of the model, or extends the previous one. */
function addModelMessage(messages: Message[], text: string, calls: number): void {
  const last = messages.at(-1);
  if (last?.from !== 'model') {
    messages.push({ from: 'model', text, calls });
    return;
  }
  // Joining lists would copy all texts for each message.
  if (text !== '') last.text = last.text === '' ? text : `${last.text}\n${text}`;
  last.calls += calls;
}

function textOf(texts: readonly string[]): string {
  return texts.join('\n');
}

function isReminder(text: string): boolean {
  return text.trimStart().startsWith('<system-reminder>');
}

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
