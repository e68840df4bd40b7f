import type { Wire } from '../../suite/model-config.ts';
import {
  addModelMessage,
  type Conversation,
  isJson,
  type Json,
  type Message,
  type OfferedTool,
  objectsOf,
  textOf,
  toolOf,
} from './conversation.ts';

/** What a request's body says, in whichever wire. Unknown parts are passed over: harnesses send many. */
export function readConversation(wire: Wire, body: Json, length: number): Conversation {
  const { system, messages, tools } = readers[wire](body);
  const options = isJson(body.stream_options) ? body.stream_options : {};
  return {
    wire,
    model: typeof body.model === 'string' ? body.model : '',
    system: system.filter((text) => text !== '').join('\n'),
    messages,
    tools,
    streamed: body.stream === true,
    usageInStream: options.include_usage === true,
    length,
  };
}

interface Reading {
  system: string[];
  messages: Message[];
  tools: OfferedTool[];
}

const readers: Record<Wire, (body: Json) => Reading> = {
  'openai-chat': readChat,
  'openai-responses': readResponses,
  'anthropic-messages': readMessages,
};

function readChat(body: Json): Reading {
  const system: string[] = [];
  const messages: Message[] = [];
  for (const message of objectsOf(body.messages)) {
    const text = textOf(message.content);
    if (message.role === 'system' || message.role === 'developer') system.push(text);
    else if (message.role === 'tool') messages.push({ from: 'tool', text });
    else if (message.role === 'assistant')
      addModelMessage(messages, text, objectsOf(message.tool_calls).length);
    else messages.push({ from: 'user', text });
  }
  const functions = objectsOf(body.tools).map((tool) => (isJson(tool.function) ? tool.function : {}));
  return { system, messages, tools: functions.flatMap((tool) => toolOf(tool.name, tool.parameters)) };
}

function readResponses(body: Json): Reading {
  const system = [textOf(body.instructions)];
  const messages: Message[] = [];
  if (typeof body.input === 'string') messages.push({ from: 'user', text: body.input });
  for (const item of objectsOf(body.input)) {
    if (item.type === 'function_call' || item.type === 'custom_tool_call') addModelMessage(messages, '', 1);
    else if (item.type === 'function_call_output' || item.type === 'custom_tool_call_output')
      messages.push({ from: 'tool', text: textOf(item.output) });
    else if (item.type === undefined || item.type === 'message') {
      const text = textOf(item.content);
      if (item.role === 'system' || item.role === 'developer') system.push(text);
      else if (item.role === 'assistant') addModelMessage(messages, text, 0);
      else messages.push({ from: 'user', text });
    }
  }
  const functions = objectsOf(body.tools).filter(({ type }) => type === 'function');
  return { system, messages, tools: functions.flatMap((tool) => toolOf(tool.name, tool.parameters)) };
}

function readMessages(body: Json): Reading {
  const system = [textOf(body.system)];
  const messages: Message[] = [];
  for (const message of objectsOf(body.messages)) {
    const text = textOf(message.content);
    const parts = objectsOf(message.content);
    if (message.role === 'system') system.push(text);
    else if (message.role === 'assistant') {
      addModelMessage(messages, text, parts.filter(({ type }) => type === 'tool_use').length);
    } else {
      const results = parts.filter(({ type }) => type === 'tool_result');
      for (const { content } of results) messages.push({ from: 'tool', text: textOf(content) });
      // Claude Code puts reminders of its own beside tool results; they are nothing the user said.
      const said = results.length === 0 ? text : textOf(parts.filter((part) => !isReminder(part)));
      if (results.length === 0 || said !== '') messages.push({ from: 'user', text: said });
    }
  }
  return {
    system,
    messages,
    tools: objectsOf(body.tools).flatMap((tool) => toolOf(tool.name, tool.input_schema)),
  };
}

function isReminder({ text }: Json): boolean {
  return typeof text === 'string' && text.trimStart().startsWith('<system-reminder>');
}
