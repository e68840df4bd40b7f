import { disorder, eventObject, incomplete } from '../../../translation/read-answers.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { isObject, type JsonObject, member } from '../../lenient.ts';
import { readError, readErrorBody } from '../../model-error.ts';
import { stringIn, typeName } from '../../read-values.ts';
import { usageOf } from '../usage.ts';
import { stopOf } from './read-answer.ts';

export const readStream: WireTranslation['readStream'] = (steps, losses) => {
  /** The item that is written now. */
  let open: { index: unknown; type: unknown; hasDelta: boolean } | undefined;
  let refused = false;

  const begin = ({ output_index: index, item }: JsonObject) => {
    if (open || !steps.begun || !isObject(item)) throw disorder('response.output_item.added');
    open = { index, type: item.type, hasDelta: false };
    if (item.type === 'function_call') steps.call(item.call_id, item.name);
    else if (item.type !== 'message' && item.type !== 'reasoning')
      losses.record(`answer.${typeName(item)}`, 'answer detail');
  };
  const inItem = (event: JsonObject, type: string) => {
    if (open?.index !== event.output_index || open?.type !== type) throw disorder(event.type);
    open.hasDelta = true;
    return stringIn(event, 'delta') ?? '';
  };
  const endItem = ({ output_index: index, item, type }: JsonObject) => {
    if (!open || open.index !== index || !isObject(item)) throw disorder(type);
    // Some servers send the arguments only here.
    if (open.type === 'function_call' && !open.hasDelta) steps.arguments(stringIn(item, 'arguments') ?? '');
    if (open.type === 'function_call') steps.closeCall();
    const signature = open.type === 'reasoning' && stringIn(item, 'encrypted_content');
    if (signature) steps.signature(signature, false);
    open = undefined;
  };

  return {
    event(data) {
      if (steps.over) return;
      const event = eventObject(data);
      const { type, response } = event;
      switch (type) {
        case 'response.created':
          if (steps.begun || !isObject(response)) throw disorder(type);
          return steps.start(stringIn(response, 'id'), stringIn(response, 'model'));
        case 'response.output_item.added':
          return begin(event);
        case 'response.output_text.delta':
          return steps.text('text', inItem(event, 'message'));
        case 'response.refusal.delta':
          refused = true;
          return steps.text('refusal', inItem(event, 'message'));
        case 'response.reasoning_summary_part.added':
          if (typeof event.summary_index === 'number' && event.summary_index > 0)
            steps.text('reasoning', '\n\n');
          return;
        case 'response.reasoning_summary_text.delta':
        case 'response.reasoning_text.delta':
          return steps.text('reasoning', inItem(event, 'reasoning'));
        case 'response.function_call_arguments.delta':
          return steps.arguments(inItem(event, 'function_call'));
        case 'response.output_item.done':
          return endItem(event);
        case 'response.completed':
        case 'response.incomplete': {
          if (open || !isObject(response) || !steps.begun) throw disorder(type);
          const stop = stopOf(response);
          return steps.end(stop === 'done' && refused ? 'refused' : stop, usageOf(response.usage));
        }
        case 'response.failed':
          return steps.failure(readError(member(response, 'error')));
        case 'error':
          return steps.failure(readErrorBody(event));
      }
    },
    end() {
      throw incomplete();
    },
  };
};
