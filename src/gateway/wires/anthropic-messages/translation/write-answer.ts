import type { Losses } from '../../../translation/losses.ts';
import type {
  NeutralAnswer,
  NeutralEvent,
  NeutralStop,
  NeutralUsage,
} from '../../../translation/neutral-answer.ts';
import type { ModelPart, NeutralRequest } from '../../../translation/neutral-request.ts';
import { WholeText } from '../../../translation/whole-text.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { eventsAround, type JsonObject } from '../../lenient.ts';
import { argumentsObject } from '../../openai.ts';

export const writeAnswer: WireTranslation['writeAnswer'] = (answer, { request, losses }) => ({
  ...messageHead(answer, request.model),
  content: answer.parts.flatMap((part) => blockOf(part, losses)),
  stop_reason: stopReasons[answer.stop],
  stop_sequence: answer.sequence ?? null,
  usage: writtenUsage(answer.usage, request),
});

function messageHead({ id, model }: Pick<NeutralAnswer, 'id' | 'model'>, asked: string): JsonObject {
  return { id: id ?? 'msg_offsite', type: 'message', role: 'assistant', model: model ?? asked };
}

const stopReasons: Readonly<Record<NeutralStop, string>> = {
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
function writtenUsage(
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

type Block = 'text' | 'thinking' | 'tool_use';

/**
 * As the API itself does, it checks the arguments of a call before it gives them away: clients fail if they
 * are no JSON, and run a part of those that were cut. Meanwhile empty pieces show that more arrives.
 */
export const writeStream: WireTranslation['writeStream'] = ({ request, losses }, emit) => {
  const whole = new WholeText();
  let index = -1;
  let open: Block | undefined;
  const event = (type: string, data: JsonObject = {}) => emit({ event: type, data: { type, ...data } });
  const deltaType = 'content_block_delta';
  const delta = (delta: JsonObject) => event(deltaType, { index, delta });
  /** Pieces of the open block. */
  let piece: ((text: string) => string) | undefined;
  const more = (text: string, make: (text: string) => JsonObject) => {
    piece ??= eventsAround((place) => ({ type: deltaType, index, delta: make(place) }));
    emit({ event: deltaType, data: piece(text) });
  };
  const close = () => {
    if (open === undefined) return;
    open = undefined;
    event('content_block_stop', { index });
  };
  const begin = (block: Block, content: JsonObject) => {
    close();
    open = block;
    piece = undefined;
    index += 1;
    event('content_block_start', { index, content_block: content });
  };
  const inBlock = (block: Block, content: JsonObject) => {
    if (open !== block) begin(block, content);
  };

  const take = (step: NeutralEvent) => {
    switch (step.type) {
      case 'start': {
        const message = {
          ...messageHead(step, request.model),
          content: [],
          stop_reason: null,
          stop_sequence: null,
        };
        const usage = writtenUsage({ output: 1, ...step.usage }, request);
        event('message_start', { message: { ...message, usage } });
        return event('ping');
      }
      case 'text':
      case 'refusal':
        inBlock('text', { type: 'text', text: '' });
        return more(step.text, (text) => ({ type: 'text_delta', text }));
      case 'reasoning':
        inBlock('thinking', { type: 'thinking', thinking: '', signature: '' });
        return more(step.text, (thinking) => ({ type: 'thinking_delta', thinking }));
      case 'signature':
        if (step.redacted) {
          close();
          index += 1;
          event('content_block_start', {
            index,
            content_block: { type: 'redacted_thinking', data: step.signature },
          });
          return event('content_block_stop', { index });
        }
        inBlock('thinking', { type: 'thinking', thinking: '', signature: '' });
        delta({ type: 'signature_delta', signature: step.signature });
        return close();
      case 'call':
        return begin('tool_use', { type: 'tool_use', id: step.id, name: step.name, input: {} });
      case 'arguments':
        whole.add(step.text);
        return more('', (partial_json) => ({ type: 'input_json_delta', partial_json }));
      case 'callEnd': {
        const text = whole.take();
        const given = argumentsObject(text, losses);
        const isWrapped = given.malformed === text;
        more(isWrapped ? JSON.stringify(given) : text, (partial_json) => ({
          type: 'input_json_delta',
          partial_json,
        }));
        return close();
      }
      case 'end': {
        close();
        const stop = { stop_reason: stopReasons[step.stop], stop_sequence: step.sequence ?? null };
        event('message_delta', { delta: stop, usage: writtenUsage(step.usage, request) });
        return event('message_stop');
      }
      case 'failure':
        return event('error', {
          error: { type: step.overloaded ? 'overloaded_error' : 'api_error', message: step.message },
        });
    }
  };
  return { take, held: () => whole.held };
};
