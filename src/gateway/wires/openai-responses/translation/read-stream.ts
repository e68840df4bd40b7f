import type { CallPieces } from '../../../translation/call-pieces.ts';
import { disorder, eventObject, incomplete } from '../../../translation/read-answers.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { isObject, type JsonObject, member, objectsOf } from '../../lenient.ts';
import { readError, readErrorBody } from '../../model-error.ts';
import { stringIn, typeName } from '../../read-values.ts';
import { usageOf } from '../usage.ts';
import { argumentsText, stopOf } from './read-answer.ts';
import { reasoningOf } from './reasoning-item.ts';

interface Item {
  id: string | undefined;
  index: unknown;
  type: unknown;
  call?: CallPieces;
  /** What its pieces said. */
  said: boolean;
  isSigned: boolean;
}

/**
 * A piece belongs to the item of its id, or the last one of its type and index, or the last one of its type.
 * What pieces did not say is read from the whole item, or the whole response.
 */
export const readStream: WireTranslation['readStream'] = (steps, losses) => {
  const items: Item[] = [];
  let isCreated = false;

  const begin = ({ output_index: index }: JsonObject, item: JsonObject): Item => {
    const begun: Item = {
      ...{ id: stringIn(item, 'id'), index, type: item.type, said: false, isSigned: false },
    };
    items.push(begun);
    if (item.type === 'function_call')
      begun.call = steps.call().add({ id: item.call_id ?? item.id, name: item.name });
    else if (item.type !== 'message' && item.type !== 'reasoning')
      losses.record(`answer.${typeName(item)}`, 'answer detail');
    return begun;
  };
  const find = (id: unknown, index: unknown, type: unknown): Item | undefined => {
    const same = items.filter((item) => item.type === type);
    const known = typeof id === 'string' && id !== '' ? same.findLast((item) => item.id === id) : undefined;
    return known ?? same.findLast((item) => item.index === index) ?? same.at(-1);
  };
  const pieceOf = (event: JsonObject, type: string): string => {
    const item = find(event.item_id, event.output_index, type) ?? begin(event, { type, id: event.item_id });
    item.said = true;
    return stringIn(event, 'delta') ?? '';
  };
  /** Reads what the pieces of an item did not say. */
  const complete = (item: JsonObject, read: Item) => {
    if (read.call) {
      if (!read.call.hasArguments) read.call.add({ arguments: argumentsText(item.arguments) });
      read.call.end();
    }
    if (item.type === 'message' && !read.said)
      for (const part of objectsOf(item.content)) {
        if (objectsOf(part.annotations).length > 0) losses.record('answer.annotations', 'answer detail');
        if (part.type === 'refusal') steps.text('refusal', stringIn(part, 'refusal') ?? '');
        else steps.text('text', stringIn(part, 'text') ?? '');
      }
    if (item.type === 'reasoning') {
      const { text, signature, redacted = false } = reasoningOf(item);
      if (!read.said) steps.text('reasoning', text);
      if (signature && !read.isSigned) steps.signature(signature, redacted);
      read.isSigned = true;
    }
    read.said = true;
  };
  const endItem = (event: JsonObject) => {
    const { item } = event;
    if (!isObject(item)) throw disorder(event.type);
    const known = find(item.id, event.output_index, item.type);
    const isKnown = known && (known.id === undefined || item.id === undefined || known.id === item.id);
    complete(item, isKnown ? known : begin(event, item));
  };
  const finish = (response: unknown, type: unknown) => {
    if (!isObject(response)) throw disorder(type);
    steps.start(stringIn(response, 'id'), stringIn(response, 'model'));
    const status = type === 'response.incomplete' ? 'incomplete' : 'completed';
    const stop = stopOf({ ...response, status: response.status ?? status });
    const unread = [...items];
    for (const [index, item] of objectsOf(response.output).entries()) {
      const same = unread.findIndex((one) => one.type === item.type);
      const [read] = same === -1 ? [] : unread.splice(same, 1);
      complete(item, read ?? begin({ output_index: index }, item));
    }
    steps.end(stop, usageOf(response.usage));
  };

  return {
    event(data) {
      if (steps.over || data.trim() === '' || data.trim() === '[DONE]') return;
      const event = eventObject(data);
      const { type, response } = event;
      switch (type) {
        case 'response.created':
          if (isCreated) throw disorder(type);
          isCreated = true;
          if (isObject(response)) steps.start(stringIn(response, 'id'), stringIn(response, 'model'));
          return;
        case 'response.output_item.added':
          if (!isObject(event.item)) throw disorder(type);
          begin(event, event.item);
          return;
        case 'response.output_text.delta':
          return steps.text('text', pieceOf(event, 'message'));
        case 'response.refusal.delta':
          return steps.text('refusal', pieceOf(event, 'message'));
        case 'response.reasoning_summary_part.added':
          if (typeof event.summary_index === 'number' && event.summary_index > 0)
            steps.text('reasoning', '\n\n');
          return;
        case 'response.reasoning_summary_text.delta':
        case 'response.reasoning_text.delta':
          return steps.text('reasoning', pieceOf(event, 'reasoning'));
        case 'response.function_call_arguments.delta': {
          const { call } = find(event.item_id, event.output_index, 'function_call') ?? {};
          if (!call) throw disorder(type);
          call.add({ arguments: stringIn(event, 'delta') ?? '' });
          return;
        }
        case 'response.output_item.done':
          return endItem(event);
        case 'response.completed':
        case 'response.incomplete':
        case 'response.done':
          return finish(response, type);
        case 'response.failed':
          return steps.failure(readError(member(response, 'error')));
        case 'error':
          return steps.failure(readErrorBody(event));
      }
      const failure = readError(event.error);
      if (failure.message !== undefined) steps.failure(failure);
    },
    end() {
      if (!steps.over) throw incomplete();
    },
  };
};
