import type { Losses } from '../../../translation/losses.ts';
import type { NeutralAnswer, NeutralStop, NeutralUsage } from '../../../translation/neutral-answer.ts';
import type { ModelPart, NeutralRequest } from '../../../translation/neutral-request.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import type { JsonObject } from '../../lenient.ts';
import { argumentsObject } from '../../reply.ts';

export const writeAnswer: WireTranslation['writeAnswer'] = (answer, { request, losses }) => ({
  ...messageHead(answer, request.model),
  content: answer.parts.flatMap((part) => blockOf(part, losses)),
  stop_reason: stopReasons[answer.stop],
  stop_sequence: answer.sequence ?? null,
  usage: usageOf(answer.usage, request),
});

export function messageHead({ id, model }: Pick<NeutralAnswer, 'id' | 'model'>, asked: string): JsonObject {
  return { id: id ?? 'msg_offsite', type: 'message', role: 'assistant', model: model ?? asked };
}

export const stopReasons: Readonly<Record<NeutralStop, string>> = {
  done: 'end_turn',
  tools: 'tool_use',
  length: 'max_tokens',
  context: 'model_context_window_exceeded',
  refused: 'refusal',
  sequence: 'stop_sequence',
};

function blockOf(part: ModelPart, losses: Losses): JsonObject[] {
  switch (part.type) {
    case 'call':
      return [
        { type: 'tool_use', id: part.id, name: part.name, input: argumentsObject(part.arguments, losses) },
      ];
    case 'reasoning':
      if (part.redacted) return [{ type: 'redacted_thinking', data: part.signature ?? '' }];
      return [{ type: 'thinking', thinking: part.text, signature: part.signature ?? '' }];
    default:
      return part.text === '' ? [] : [{ type: 'text', text: part.text, citations: null }];
  }
}

/** Clients read these members without a check. */
const noUsage = { input_tokens: 0, output_tokens: 0 };

/** This wire counts cached tokens separately from the others. */
export function usageOf(
  { input, output, cacheRead, cacheWrite, reasoning }: NeutralUsage,
  { usageAsked }: NeutralRequest,
): JsonObject {
  return {
    ...(usageAsked && noUsage),
    ...(input !== undefined && { input_tokens: Math.max(0, input - (cacheRead ?? 0) - (cacheWrite ?? 0)) }),
    ...(cacheWrite !== undefined && { cache_creation_input_tokens: cacheWrite }),
    ...(cacheRead !== undefined && { cache_read_input_tokens: cacheRead }),
    ...(output !== undefined && { output_tokens: output }),
    ...(reasoning !== undefined && { output_tokens_details: { thinking_tokens: reasoning } }),
  };
}
