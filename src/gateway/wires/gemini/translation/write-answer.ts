import type { Losses } from '../../../translation/losses.ts';
import {
  type NeutralAnswer,
  type NeutralEvent,
  type NeutralStop,
  type NeutralUsage,
  UnreadableAnswer,
} from '../../../translation/neutral-answer.ts';
import type { ModelPart } from '../../../translation/neutral-request.ts';
import { WholeText } from '../../../translation/whole-text.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { eventsAround, type JsonObject } from '../../lenient.ts';
import { argumentsObject, fields } from '../../openai.ts';
import { signedParts } from './write-request.ts';

export const writeAnswer: WireTranslation['writeAnswer'] = (answer, { request, losses }) => {
  const carried = answer.parts.filter((part) => part.type !== 'reasoning' || !part.redacted);
  if (carried.length < answer.parts.length) losses.record('answer.redacted', 'reasoning');
  const parts = signedParts(carried, (part) => partOf(part, losses));
  return {
    candidates: [{ content: { parts, role: 'model' }, finishReason: finishReasons[answer.stop], index: 0 }],
    ...head(answer, request.model),
    usageMetadata: writtenUsage(answer.usage),
  };
};

function head({ id, model }: Pick<NeutralAnswer, 'id' | 'model'>, asked: string): JsonObject {
  return { modelVersion: model ?? asked, responseId: id ?? 'offsite' };
}

const finishReasons: Readonly<Record<NeutralStop, string>> = {
  done: 'STOP',
  tools: 'STOP',
  length: 'MAX_TOKENS',
  context: 'MAX_TOKENS',
  refused: 'SAFETY',
  sequence: 'STOP',
};

function partOf(part: Exclude<ModelPart, { type: 'reasoning' }>, losses: Losses): JsonObject {
  if (part.type !== 'call') return { text: part.text };
  return { functionCall: { id: part.id, name: part.name, args: argumentsObject(part.arguments, losses) } };
}

function writtenUsage({ input, output, cacheRead, reasoning }: NeutralUsage): JsonObject {
  return fields({
    promptTokenCount: input,
    candidatesTokenCount: output === undefined ? undefined : Math.max(0, output - (reasoning ?? 0)),
    thoughtsTokenCount: reasoning,
    cachedContentTokenCount: cacheRead,
    totalTokenCount: input === undefined || output === undefined ? undefined : input + output,
  });
}

export function errorBody(status: number, message: string): JsonObject {
  return { error: { code: status, message, status: statusName(status) } };
}

function statusName(status: number): string {
  const names: Record<number, string> = {
    401: 'UNAUTHENTICATED',
    403: 'PERMISSION_DENIED',
    404: 'NOT_FOUND',
    429: 'RESOURCE_EXHAUSTED',
    503: 'UNAVAILABLE',
    504: 'DEADLINE_EXCEEDED',
  };
  return names[status] ?? (status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT');
}

/** The wire carries a call in one piece, so its arguments are kept until they are complete. */
export const writeStream: WireTranslation['writeStream'] = ({ request, losses }, emit) => {
  let about: JsonObject = {};
  let call = { id: '', name: '' };
  /** For the next part that is no thought. */
  let signature: string | undefined;
  const whole = new WholeText();
  let said: { isThought: boolean; data: (text: string) => string } | undefined;
  const chunk = (part: JsonObject, more: JsonObject = {}, usage: JsonObject = {}) => ({
    candidates: [{ content: { parts: [part], role: 'model' }, ...more, index: 0 }],
    ...about,
    ...usage,
  });
  const send = (...of: Parameters<typeof chunk>) => emit({ event: undefined, data: chunk(...of) });
  const text = (text: string, isThought: boolean) => {
    if (said?.isThought !== isThought) {
      const thought = isThought ? { thought: true } : {};
      said = { isThought, data: eventsAround((place) => chunk({ text: place, ...thought })) };
    }
    emit({ event: undefined, data: said.data(text) });
  };
  const signed = (part: JsonObject) => {
    const all = { ...part, ...(signature !== undefined && { thoughtSignature: signature }) };
    signature = undefined;
    return all;
  };

  const take = (step: NeutralEvent) => {
    switch (step.type) {
      case 'start':
        about = head(step, request.model);
        return;
      case 'text':
      case 'refusal':
        return signature === undefined ? text(step.text, false) : send(signed({ text: step.text }));
      case 'reasoning':
        return text(step.text, true);
      case 'signature':
        if (step.redacted) losses.record('answer.redacted', 'reasoning');
        else signature = step.signature;
        return;
      case 'call':
        call = { id: step.id, name: step.name };
        return;
      case 'arguments':
        return whole.add(step.text);
      case 'callEnd':
        return send(signed(partOf({ type: 'call', ...call, arguments: whole.take() }, losses)));
      case 'end':
        return send(
          signed({ text: '' }),
          { finishReason: finishReasons[step.stop] },
          { usageMetadata: writtenUsage(step.usage) },
        );
      case 'failure':
        // Not every client looks for errors in a stream, so it also breaks off.
        emit({ event: undefined, data: errorBody(step.overloaded ? 503 : 500, step.message) });
        throw new UnreadableAnswer(step.message);
    }
  };
  return { take, held: () => whole.held };
};
