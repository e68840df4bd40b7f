import { portableId } from '../../../translation/call-ids.ts';
import type { Losses } from '../../../translation/losses.ts';
import {
  type Content,
  dropUnsupported,
  type ModelPart,
  type NeutralMessage,
  type NeutralRequest,
  splitSystem,
} from '../../../translation/neutral-request.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { type JsonObject, objectsOf, type RepeatedText, stringIn } from '../../lenient.ts';
import { fields } from '../../openai.ts';

export const writeRequest: WireTranslation['writeRequest'] = (request, losses, to) => {
  const { system, messages } = splitSystem(request.messages, losses);
  dropUnsupported(request, ['topK', 'seed', 'presencePenalty', 'frequencyPenalty'], losses);
  if (request.stop.length > 0) losses.refuse('stop');
  const { toolChoice: choice, tools } = request;
  const effort = effortOf(request, losses);
  return fields({
    model: to.model,
    instructions: system.length === 0 ? undefined : system.join('\n\n'),
    input: messages.flatMap((message) => itemsOf(message, losses)),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters, strict = false }) =>
        // With strict tools every parameter is required, so the wire's own default is not taken.
        fields({ type: 'function', name, description, parameters, strict }),
      ),
      tool_choice: typeof choice === 'object' ? { type: 'function', name: choice.tool } : choice,
      parallel_tool_calls: request.parallelCalls,
    }),
    text: formatOf(request),
    max_output_tokens: request.maxTokens,
    temperature: request.temperature,
    top_p: request.topP,
    reasoning: effort && { effort, summary: effort === 'none' ? undefined : 'auto' },
    // Nothing is stored there, so the thoughts travel with the conversation.
    include: effort && effort !== 'none' ? ['reasoning.encrypted_content'] : undefined,
    store: false,
    stream: request.streamed || undefined,
  });
};

/** A budget becomes the effort that is nearest to it. */
function effortOf({ reasoning }: NeutralRequest, losses: Losses): string | undefined {
  const { effort, budget } = reasoning ?? {};
  if (budget !== undefined) losses.drop('reasoning.budget', 'reasoning');
  if (effort !== undefined || budget === undefined) return effort;
  return budget <= 4096 ? 'low' : budget <= 16_384 ? 'medium' : 'high';
}

function formatOf({ format }: NeutralRequest): JsonObject | undefined {
  if (!format) return undefined;
  const { schema, name = 'answer', strict = false } = format;
  return { format: schema ? { type: 'json_schema', name, schema, strict } : { type: 'json_object' } };
}

function itemsOf(message: NeutralMessage, losses: Losses): JsonObject[] {
  switch (message.from) {
    case 'system':
      return [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: message.text }] }];
    case 'user':
      return [{ type: 'message', role: 'user', content: message.parts.map(partOf) }];
    case 'tool': {
      if (message.failed) losses.drop('messages[].failed', 'tool result status');
      const { parts } = message;
      const [only] = parts;
      const output =
        parts.length === 0 ? '' : parts.length === 1 && only?.type === 'text' ? only.text : parts.map(partOf);
      return [{ type: 'function_call_output', call_id: portableId(message.callId), output }];
    }
    case 'model':
      return message.parts.flatMap((part) => modelItem(part, losses));
  }
}

function modelItem(part: ModelPart, losses: Losses): JsonObject[] {
  const said = (content: JsonObject) => [{ type: 'message', role: 'assistant', content: [content] }];
  switch (part.type) {
    case 'text':
      return part.text === '' ? [] : said({ type: 'output_text', text: part.text, annotations: [] });
    case 'refusal':
      return said({ type: 'refusal', refusal: part.text });
    case 'reasoning':
      if (part.signature !== undefined) return [reasoningItem(part)];
      // The API takes back only thoughts that it has encrypted.
      losses.drop('messages[].parts[].reasoning', 'reasoning');
      return [];
    case 'call': {
      const { id, name, arguments: given } = part;
      return [{ type: 'function_call', call_id: portableId(id), name, arguments: given }];
    }
  }
}

function partOf(part: Content): JsonObject {
  if (part.type === 'text') return { type: 'input_text', text: part.text };
  if ('url' in part) return { type: 'input_image', image_url: part.url, detail: 'auto' };
  const url = `data:${part.mediaType};base64,${part.data}`;
  if (part.type === 'image') return { type: 'input_image', image_url: url, detail: 'auto' };
  return { type: 'input_file', filename: part.name ?? 'document', file_data: url };
}

type Reasoning = Extract<ModelPart, { type: 'reasoning' }>;

interface WrittenReasoning {
  text: string | RepeatedText;
  signature?: string | undefined;
  redacted?: boolean | undefined;
}

/**
 * Marks encrypted content that the model's wire calls redacted, and not a signature of the text beside it.
 */
const redactedMark = 'redacted:';

export function reasoningOf(item: JsonObject): Reasoning {
  const texts = [...objectsOf(item.summary), ...objectsOf(item.content)].flatMap(
    (part) => stringIn(part, 'text') ?? [],
  );
  const signature = stringIn(item, 'encrypted_content') || undefined;
  if (signature?.startsWith(redactedMark))
    return { type: 'reasoning', text: '', signature: signature.slice(redactedMark.length), redacted: true };
  return { type: 'reasoning', text: texts.join('\n\n'), ...(signature && { signature }) };
}

export function reasoningItem({ text, signature, redacted }: WrittenReasoning): JsonObject {
  return {
    type: 'reasoning',
    summary: text === '' ? [] : [{ type: 'summary_text', text }],
    ...(signature !== undefined && {
      encrypted_content: redacted ? `${redactedMark}${signature}` : signature,
    }),
  };
}
