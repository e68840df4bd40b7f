import type {
  NeutralAnswer,
  NeutralEvent,
  NeutralStop,
  NeutralUsage,
} from '../../../translation/neutral-answer.ts';
import { freeFormInput, isFreeFormTool, type NeutralRequest } from '../../../translation/neutral-request.ts';
import { WholeText } from '../../../translation/whole-text.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { eventsAround, type JsonObject } from '../../lenient.ts';

export const writeAnswer: WireTranslation['writeAnswer'] = (answer, { request, at, losses }) => {
  const texts = (type: 'text' | 'refusal' | 'reasoning') =>
    answer.parts.flatMap((part) => (part.type === type ? [part.text] : [])).join('');
  const calls = answer.parts.flatMap((part) => (part.type === 'call' ? [callOf(part, request)] : []));
  if (answer.parts.some((part) => part.type === 'reasoning' && part.signature !== undefined))
    losses.record('answer.signature', 'reasoning');
  const message = {
    role: 'assistant',
    content: texts('text') || null,
    refusal: texts('refusal') || null,
    ...(texts('reasoning') !== '' && { reasoning_content: texts('reasoning') }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return {
    ...head(answer, 'chat.completion', request.model, at),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReasons[answer.stop] }],
    ...(Object.keys(answer.usage).length > 0 && { usage: writtenUsage(answer.usage) }),
  };
};

function head(
  { id, model }: Pick<NeutralAnswer, 'id' | 'model'>,
  object: string,
  asked: string,
  at: number,
): JsonObject {
  return { id: id ?? 'chatcmpl-offsite', object, created: Math.floor(at / 1000), model: model ?? asked };
}

const finishReasons: Readonly<Record<NeutralStop, string>> = {
  done: 'stop',
  tools: 'tool_calls',
  length: 'length',
  context: 'length',
  refused: 'content_filter',
  sequence: 'stop',
};

function callOf(
  { id, name, arguments: given }: { id: string; name: string; arguments: string },
  request: NeutralRequest,
): JsonObject {
  if (isFreeFormTool(request, name))
    return { id, type: 'custom', custom: { name, input: freeFormInput(given) } };
  return { id, type: 'function', function: { name, arguments: given } };
}

function writtenUsage({ input = 0, output = 0, cacheRead, cacheWrite, reasoning }: NeutralUsage): JsonObject {
  const cached = {
    ...(cacheRead !== undefined && { cached_tokens: cacheRead }),
    ...(cacheWrite !== undefined && { cache_write_tokens: cacheWrite }),
  };
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    ...(Object.keys(cached).length > 0 && { prompt_tokens_details: cached }),
    ...(reasoning !== undefined && { completion_tokens_details: { reasoning_tokens: reasoning } }),
  };
}

export const writeStream: WireTranslation['writeStream'] = ({ request, at, losses }, emit) => {
  let begun: JsonObject = {};
  let index = -1;
  /** The text of an open call whose client wants it without JSON around it. */
  let input: WholeText | undefined;
  const nothing = request.usageAsked ? { usage: null } : {};
  let said: { type: string; data: (text: string) => string } | undefined;
  const chunk = (choices: JsonObject[], more: JsonObject = nothing) => ({ ...begun, choices, ...more });
  const deltaChunk = (delta: JsonObject, finish_reason: string | null = null) =>
    chunk([{ index: 0, delta, logprobs: null, finish_reason }]);
  const send = (data: JsonObject | string) => emit({ event: undefined, data });
  const delta = (delta: JsonObject, finish_reason?: string) => send(deltaChunk(delta, finish_reason));
  const callPiece = (call: JsonObject) => ({ tool_calls: [{ index, ...call }] });
  const call = (piece: JsonObject) => delta(callPiece(piece));
  const text = (type: string, text: string, make: (text: string) => JsonObject) => {
    if (said?.type !== type) said = { type, data: eventsAround((place) => deltaChunk(make(place))) };
    send(said.data(text));
  };

  const take = (step: NeutralEvent) => {
    switch (step.type) {
      case 'start':
        begun = head(step, 'chat.completion.chunk', request.model, at);
        return delta({ role: 'assistant', content: '' });
      case 'text':
        return text('text', step.text, (content) => ({ content }));
      case 'refusal':
        return text('refusal', step.text, (refusal) => ({ refusal }));
      case 'reasoning':
        return text('reasoning', step.text, (reasoning_content) => ({ reasoning_content }));
      case 'signature':
        return losses.record('answer.signature', 'reasoning');
      case 'call': {
        const { id, name } = step;
        index += 1;
        if (isFreeFormTool(request, name)) {
          input = new WholeText();
          return call({ id, type: 'custom', custom: { name, input: '' } });
        }
        return call({ id, type: 'function', function: { name, arguments: '' } });
      }
      case 'arguments':
        if (input) return input.add(step.text);
        return text(`call ${index}`, step.text, (place) => callPiece({ function: { arguments: place } }));
      case 'callEnd':
        if (input) call({ custom: { input: freeFormInput(input.take()) } });
        input = undefined;
        return;
      case 'end':
        delta({}, finishReasons[step.stop]);
        if (request.usageAsked && Object.keys(step.usage).length > 0)
          send(chunk([], { usage: writtenUsage(step.usage) }));
        return send('[DONE]');
      case 'failure': {
        const type = step.overloaded ? 'server_error' : 'api_error';
        return send({ error: { message: step.message, type, param: null, code: step.code ?? null } });
      }
    }
  };
  return { take, held: () => input?.held ?? 0 };
};
