import { eventObjects } from '../../../translation/event-objects.ts';
import type { NeutralUsage } from '../../../translation/neutral-answer.ts';
import { incomplete, stopOf } from '../../../translation/read-answers.ts';
import { UnreadableAnswer } from '../../../translation/unreadable-answer.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { isObject, type JsonObject, member, objectsOf } from '../../lenient.ts';
import { readError } from '../../model-error.ts';
import { stringIn } from '../../read-values.ts';
import { stops } from '../stops.ts';
import { usageOf } from '../usage.ts';
import { thoughtIn } from './read-answer.ts';

export const readStream: WireTranslation['readStream'] = (steps, losses) => {
  const read = eventObjects();
  let usage: NeutralUsage = {};
  let reason: unknown;
  let refused = false;
  /** The index and the id of the last call, and whether the call is still open. */
  let call = { index: -1, id: undefined as unknown, open: false };

  const finish = () => {
    if (steps.over) return;
    if (reason == null) throw incomplete();
    const stop = stopOf(stops, reason);
    steps.end(stop === 'done' && refused ? 'refused' : stop, usage);
  };
  const said = (type: 'text' | 'refusal' | 'reasoning', text: string) => {
    if (text === '') return;
    steps.text(type, text);
    call.open = false;
  };
  const called = (delta: JsonObject) => {
    const { index = call.index < 0 ? 0 : call.index, id } = delta;
    if (typeof index !== 'number') throw new UnreadableAnswer('a tool call has no number');
    const name = member(delta.function, 'name');
    // Some servers number all calls 0, and distinguish them by their ids.
    const isNew = index > call.index || (typeof name === 'string' && name !== '' && !!id && id !== call.id);
    if (isNew) {
      steps.call(id, name);
      call = { index, id, open: true };
    } else if (index < call.index || !call.open)
      throw new UnreadableAnswer('a piece of a tool call arrived after the call had ended');
    const given = member(delta.function, 'arguments');
    if (isObject(given)) steps.arguments(JSON.stringify(given));
    else if (typeof given === 'string') steps.arguments(given);
  };

  return {
    event(data) {
      if (steps.over) return;
      if (data.trim() === '[DONE]') return finish();
      const chunk = read(data);
      const failure = readError(chunk.error);
      if (failure.message !== undefined) return steps.failure(failure);
      steps.start(stringIn(chunk, 'id'), stringIn(chunk, 'model'));
      if (isObject(chunk.usage)) usage = usageOf(chunk.usage);
      for (const choice of objectsOf(chunk.choices)) {
        if (choice.index !== undefined && choice.index !== 0)
          throw new UnreadableAnswer('the answer has more than one choice');
        if (choice.logprobs != null) losses.record('answer.logprobs', 'answer detail');
        const { delta } = choice;
        if (isObject(delta)) {
          said('reasoning', thoughtIn(delta));
          said('text', stringIn(delta, 'content') ?? '');
          const refusal = stringIn(delta, 'refusal') ?? '';
          refused ||= refusal !== '';
          said('refusal', refusal);
          for (const piece of objectsOf(delta.tool_calls)) called(piece);
        }
        reason = choice.finish_reason ?? reason;
      }
    },
    // Not every server ends with [DONE].
    end: finish,
  };
};
