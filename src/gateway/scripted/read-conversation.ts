import type { Wire } from '../../suite/model-config.ts';
import { isObject, type JsonObject } from '../wires/lenient.ts';
import type { RequestMessage } from '../wires/model-request.ts';
import type { PathTarget } from '../wires/wire-descriptor.ts';
import { wireTable } from '../wires/wire-table.ts';
import type { Conversation, Message } from './conversation.ts';

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
  const { read, usageOption } = wireTable[wire].requests;
  const { system, messages, tools } = read(body);
  const options = usageOption && body[usageOption.member];
  return {
    wire,
    model: inPath?.model ?? (typeof body.model === 'string' ? body.model : ''),
    system: textOf(system.filter((text) => text !== '')),
    messages: messages.reduce<Message[]>(addMessage, []),
    tools,
    streamed: inPath?.streamed ?? body.stream === true,
    usageAsked: !usageOption || (isObject(options) && options[usageOption.option] === true),
    length,
  };
}

function addMessage(messages: Message[], message: RequestMessage): Message[] {
  if (message.from === 'tool') messages.push({ from: 'tool', text: textOf(message.texts) });
  else if (message.from === 'model') addModelMessage(messages, textOf(message.texts), message.calls.length);
  else {
    // Claude Code adds its own reminders to tool results; they are not from the user.
    const said = message.besideResults ? message.texts.filter((text) => !isReminder(text)) : message.texts;
    if (!message.besideResults || textOf(said) !== '') messages.push({ from: 'user', text: textOf(said) });
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
