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
import type { JsonObject } from '../../lenient.ts';
import { argumentsOf, fields } from '../../openai.ts';

/** This wire requires a limit; every model since Claude 3.5 accepts this one. */
export const defaultMaxTokens = 8192;

export const writeRequest: WireTranslation['writeRequest'] = (request, losses, to) => {
  const { system, messages } = splitSystem(request.messages, losses);
  dropUnsupported(request, ['seed', 'presencePenalty', 'frequencyPenalty'], losses);
  const maxTokens = request.maxTokens ?? to.maxOutputTokens ?? defaultMaxTokens;
  return fields({
    model: to.model,
    max_tokens: maxTokens,
    system: system.length === 0 ? undefined : system.map((text) => ({ type: 'text', text })),
    messages: messagesOf(messages, losses),
    tools:
      request.tools.length === 0
        ? undefined
        : request.tools.map(({ name, description, parameters, strict }) =>
            fields({
              name,
              description,
              input_schema: { type: 'object', ...parameters },
              strict,
            }),
          ),
    tool_choice: choiceOf(request),
    stop_sequences: request.stop.length === 0 ? undefined : request.stop,
    temperature: temperatureOf(request, losses),
    top_p: request.topP,
    top_k: request.topK,
    ...thinkingOf(request, maxTokens, losses),
    stream: request.streamed || undefined,
  });
};

/** This wire's highest temperature is 1. */
function temperatureOf({ temperature }: NeutralRequest, losses: Losses): number | undefined {
  if (temperature === undefined || temperature <= 1) return temperature;
  losses.drop('temperature', 'sampling');
  return 1;
}

function choiceOf({ toolChoice, parallelCalls, tools }: NeutralRequest): JsonObject | undefined {
  if (tools.length === 0) return undefined;
  const one = parallelCalls === false ? { disable_parallel_tool_use: true } : {};
  if (toolChoice === 'none') return { type: 'none' };
  if (toolChoice === 'required') return { type: 'any', ...one };
  if (typeof toolChoice === 'object') return { type: 'tool', name: toolChoice.tool, ...one };
  return toolChoice === 'auto' || parallelCalls === false ? { type: 'auto', ...one } : undefined;
}

/** The least budget that this wire takes. */
const leastBudget = 1024;

function thinkingOf({ reasoning, format }: NeutralRequest, maxTokens: number, losses: Losses): JsonObject {
  const { effort, budget } = reasoning ?? {};
  // The wire has no option for JSON without a schema; the prompt asks for JSON anyway.
  if (format && !format.schema) losses.drop('format', 'structured output option');
  const config = fields({
    effort: effort === 'none' ? undefined : effort === 'minimal' ? 'low' : effort,
    format: format?.schema && { type: 'json_schema', schema: format.schema },
  });
  const budgetTokens = budget === undefined ? undefined : Math.min(budget, maxTokens - 1);
  const fits = budgetTokens !== undefined && budgetTokens >= leastBudget;
  if (budget !== undefined && !fits) losses.drop('reasoning.budget', 'reasoning');
  return {
    ...(effort === 'none' && { thinking: { type: 'disabled' } }),
    ...(fits && { thinking: { type: 'enabled', budget_tokens: budgetTokens } }),
    ...(Object.keys(config).length > 0 && { output_config: config }),
  };
}

/** Users and models take turns, and results belong to the user: merges consecutive messages of one side. */
function messagesOf(messages: readonly NeutralMessage[], losses: Losses): JsonObject[] {
  const merged: { role: string; content: JsonObject[] }[] = [];
  for (const message of messages) {
    const role = message.from === 'model' ? 'assistant' : 'user';
    const blocks = blocksOf(message, losses);
    const last = merged.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else if (blocks.length > 0) merged.push({ role, content: blocks });
  }
  return merged;
}

function blocksOf(message: NeutralMessage, losses: Losses): JsonObject[] {
  switch (message.from) {
    case 'system':
      return [{ type: 'text', text: message.text }];
    case 'user':
      return message.parts.flatMap(contentOf);
    case 'tool':
      return [
        {
          type: 'tool_result',
          tool_use_id: portableId(message.callId),
          content: message.parts.flatMap(contentOf),
          ...(message.failed && { is_error: true }),
        },
      ];
    case 'model':
      return message.parts.flatMap((part) => modelBlock(part, losses));
  }
}

function modelBlock(part: ModelPart, losses: Losses): JsonObject[] {
  switch (part.type) {
    case 'call':
      return [
        { type: 'tool_use', id: portableId(part.id), name: part.name, input: argumentsOf(part.arguments) },
      ];
    case 'reasoning':
      if (part.signature !== undefined) {
        if (part.redacted) return [{ type: 'redacted_thinking', data: part.signature }];
        return [{ type: 'thinking', thinking: part.text, signature: part.signature }];
      }
      // The API refuses thoughts that it did not sign.
      losses.drop('messages[].parts[].reasoning', 'reasoning');
      return [];
    default:
      return textBlock(part.text);
  }
}

/** The API refuses empty text blocks. */
function textBlock(text: string): JsonObject[] {
  return text.trim() === '' ? [] : [{ type: 'text', text }];
}

function contentOf(part: Content): JsonObject[] {
  if (part.type === 'text') return textBlock(part.text);
  if ('url' in part) return [{ type: 'image', source: { type: 'url', url: part.url } }];
  const source = { type: 'base64', media_type: part.mediaType, data: part.data };
  if (part.type === 'image') return [{ type: 'image', source }];
  return [{ type: 'document', source, ...(part.name !== undefined && { title: part.name }) }];
}
