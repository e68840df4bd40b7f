import { portableId } from '../../../translation/call-ids.ts';
import type { Losses } from '../../../translation/losses.ts';
import {
  type Content,
  dropUnsupported,
  type NeutralMessage,
  splitSystem,
} from '../../../translation/neutral-request.ts';
import { samplingOf } from '../../../translation/read-requests.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import type { JsonObject } from '../../lenient.ts';
import { fields } from '../../openai.ts';

export const writeRequest: WireTranslation['writeRequest'] = (request, losses, to) => {
  const { system, messages } = splitSystem(request.messages, losses);
  dropUnsupported(request, ['topK'], losses);
  const { toolChoice: choice, reasoning, tools, streamed } = request;
  if (reasoning?.budget !== undefined) losses.drop('reasoning.budget', 'reasoning');
  return fields({
    model: to.model,
    messages: [
      ...(system.length === 0 ? [] : [{ role: 'system', content: system.join('\n\n') }]),
      ...messagesOf(messages, losses),
    ],
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters, strict }) => ({
        type: 'function',
        function: fields({ name, description, parameters, strict }),
      })),
      tool_choice:
        typeof choice === 'object' ? { type: 'function', function: { name: choice.tool } } : choice,
      parallel_tool_calls: request.parallelCalls,
    }),
    stop: request.stop.length === 0 ? undefined : request.stop,
    // The old name, which local servers know; the others are asked with the new one (gateway/options/).
    max_tokens: request.maxTokens,
    ...samplingOf({ ...request, topK: undefined }),
    reasoning_effort: reasoning?.effort,
    response_format: formatOf(request.format),
    stream: streamed || undefined,
    stream_options: streamed ? { include_usage: true } : undefined,
  });
};

function formatOf(format: Parameters<WireTranslation['writeRequest']>[0]['format']): JsonObject | undefined {
  if (!format) return undefined;
  const { schema, name = 'answer', strict } = format;
  if (!schema) return { type: 'json_object' };
  return { type: 'json_schema', json_schema: fields({ name, schema, strict }) };
}

/**
 * A result of a tool has only text here, so its images follow in a message of the user. That message comes
 * after all results, because the wire requires the results next to their calls.
 */
function messagesOf(messages: readonly NeutralMessage[], losses: Losses): JsonObject[] {
  const written: JsonObject[] = [];
  let media: JsonObject[] = [];
  const flush = () => {
    if (media.length > 0) written.push({ role: 'user', content: media });
    media = [];
  };
  for (const message of messages) {
    if (message.from !== 'tool') flush();
    switch (message.from) {
      case 'system':
      case 'user':
        written.push({
          role: 'user',
          content: contentOf(
            message.from === 'user' ? message.parts : [{ type: 'text', text: message.text }],
          ),
        });
        break;
      case 'tool': {
        const { callId, parts, failed } = message;
        if (failed) losses.drop('messages[].failed', 'tool result status');
        const others = parts.filter(({ type }) => type !== 'text');
        if (others.length > 0) {
          media.push({ type: 'text', text: `From the result of the tool call ${portableId(callId)}:` });
          media.push(...others.map(partOf));
        }
        const content = contentOf(parts.filter(({ type }) => type === 'text'));
        written.push({ role: 'tool', tool_call_id: portableId(callId), content });
        break;
      }
      case 'model':
        written.push(modelMessage(message, losses));
    }
  }
  flush();
  return written;
}

function modelMessage({ parts }: Extract<NeutralMessage, { from: 'model' }>, losses: Losses): JsonObject {
  const texts = (type: 'text' | 'refusal' | 'reasoning') =>
    parts.flatMap((part) => (part.type === type ? [part.text] : [])).join('');
  const calls = parts.flatMap((part) => (part.type === 'call' ? [part] : []));
  if (parts.some((part) => part.type === 'reasoning' && part.signature !== undefined))
    losses.drop('messages[].parts[].signature', 'reasoning');
  const content = texts('text') || texts('refusal');
  return fields({
    role: 'assistant',
    content,
    // Servers that give thoughts under this name read them back.
    reasoning_content: texts('reasoning') || undefined,
    tool_calls:
      calls.length === 0
        ? undefined
        : calls.map(({ id, name, arguments: given }) => ({
            id: portableId(id),
            type: 'function',
            function: { name, arguments: given },
          })),
  });
}

/** Many servers take only a string. */
function contentOf(parts: readonly Content[]): string | JsonObject[] {
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  return texts.length === parts.length ? texts.join('\n') : parts.map(partOf);
}

function partOf(part: Content): JsonObject {
  if (part.type === 'text') return { type: 'text', text: part.text };
  if ('url' in part) return { type: 'image_url', image_url: { url: part.url } };
  const url = `data:${part.mediaType};base64,${part.data}`;
  if (part.type === 'image') return { type: 'image_url', image_url: { url } };
  return { type: 'file', file: { filename: part.name ?? 'document', file_data: url } };
}
