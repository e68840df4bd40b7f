import type { NeutralEvent } from '../../../translation/neutral-answer.ts';
import { UnreadableAnswer } from '../../../translation/unreadable-answer.ts';
import { WholeText } from '../../../translation/whole-text.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import type { JsonObject } from '../../lenient.ts';
import { eventsAround } from '../../text-event.ts';
import { errorBody, finishReasons, head, partOf, usageOf } from './write-answer.ts';

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
          { usageMetadata: usageOf(step.usage) },
        );
      case 'failure':
        // Not every client looks for errors in a stream, so it also breaks off.
        emit({ event: undefined, data: errorBody(step.overloaded ? 503 : 500, step.message) });
        throw new UnreadableAnswer(step.message);
    }
  };
  return { take, held: () => whole.held };
};
