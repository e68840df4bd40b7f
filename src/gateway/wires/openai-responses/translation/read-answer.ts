import type { CallPieces } from '../../../translation/call-pieces.ts';
import type { Losses } from '../../../translation/losses.ts';
import type { NeutralStop } from '../../../translation/neutral-answer.ts';
import {
  disorder,
  eventObjects,
  incomplete,
  isDone,
  NoAnswer,
  otherStopNamed,
} from '../../../translation/read-answers.ts';
import { stopNamed } from '../../../translation/stops.ts';
import { UnreadableAnswer } from '../../../translation/unreadable-answer.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { isObject, type JsonObject, member, objectsOf } from '../../lenient.ts';
import { readError, readErrorBody } from '../../model-error.ts';
import { usageOf } from '../../openai.ts';
import { stringIn, typeName } from '../../read-values.ts';
import { plainText } from '../../reply.ts';
import { stops } from '../stops.ts';
import { reasoningOf } from './reasoning-item.ts';

interface Item {
  id: string | undefined;
  callId: unknown;
  index: unknown;
  type: unknown;
  call?: CallPieces;
  /** What the item had at its beginning: arguments or content. Its pieces count instead, if there are any. */
  given: unknown;
  /** Whether it was said, or a part of it. */
  said: boolean;
  /** The parts that came as whole texts. */
  texts: unknown[];
  isSigned: boolean;
  isDone: boolean;
}

/**
 * A piece belongs to the item of its id, or the last open one of its type and index, or of its type.
 * What pieces did not say is read from the whole text, the whole item, or the whole response. A whole answer
 * is read as a response that is complete.
 */
export const read: WireTranslation['read'] = (steps, losses) => {
  const items: Item[] = [];
  let created: unknown;
  let isTold = false;

  const begin = ({ output_index: index }: JsonObject, item: JsonObject): Item => {
    const begun: Item = {
      ...{ id: stringIn(item, 'id'), callId: item.call_id, index, type: item.type },
      ...{ given: item.arguments ?? item.content, said: false, texts: [], isSigned: false, isDone: false },
    };
    items.push(begun);
    const { call_id: callId = item.name && item.id, name } = item;
    if (item.type === 'function_call') begun.call = steps.call().add({ id: callId, name });
    else if (item.type !== 'message' && item.type !== 'reasoning')
      losses.record(`answer.${typeName(item)}`, 'answer detail');
    return begun;
  };
  const find = (id: unknown, index: unknown, type: unknown): Item | undefined => {
    const same = items.filter((item) => item.type === type);
    const known = typeof id === 'string' && id !== '' ? same.findLast((item) => item.id === id) : undefined;
    const open = same.filter((item) => !item.isDone);
    return known ?? open.findLast((item) => item.index === index) ?? open.at(-1);
  };
  const itemOf = (event: JsonObject, type: string): Item =>
    find(event.item_id, event.output_index, type) ?? begin(event, { type, id: event.item_id });
  const piece = (event: JsonObject, type: string): string => {
    const item = itemOf(event, type);
    const text = plainText([event.delta].flat()) || String(event.delta ?? '');
    item.said ||= text !== '';
    return text;
  };
  /** A text that is whole, whose pieces may have come before. */
  const rest = (event: JsonObject, type: string, text: unknown): string => {
    return typeof text === 'string' && isUnsaid(event, type) ? text : '';
  };
  /** Whether no piece, and no whole text of the same part, came before. */
  const isUnsaid = (event: JsonObject, type: string): boolean => {
    const item = itemOf(event, type);
    const { content_index: part = event.summary_index } = event;
    if (item.said && (item.texts.length === 0 || item.texts.includes(part))) return false;
    item.said = true;
    item.texts.push(part);
    return true;
  };
  /** Reads what the pieces of an item did not say. */
  const complete = (item: JsonObject, read: Item) => {
    if (read.call) {
      // Some servers give the id and the name only here.
      read.call.add({ id: item.call_id ?? item.id, name: read.call.name === '' ? item.name : undefined });
      if (!read.call.hasArguments) read.call.add({ arguments: argumentsText(item.arguments || read.given) });
      read.call.end();
    }
    if (item.type === 'message' && !read.said) message(item.content);
    if (item.type === 'reasoning') {
      const { text, signature, redacted = false } = reasoningOf(item);
      if (!read.said) steps.text('reasoning', text);
      if (signature && !read.isSigned) steps.signature(signature, redacted);
      read.isSigned = true;
    }
    read.said = true;
    read.isDone = true;
  };
  const message = (content: unknown) => {
    for (const part of typeof content === 'string' ? [{ text: content }] : objectsOf(content)) {
      if (objectsOf(part.annotations).length > 0) losses.record('answer.annotations', 'answer detail');
      if (part.type === 'refusal') steps.text('refusal', stringIn(part, 'refusal') ?? '');
      else steps.text('text', stringIn(part, 'text') ?? '');
    }
  };
  const endItem = (event: JsonObject) => {
    const { item } = event;
    if (!isObject(item)) throw disorder(event.type);
    complete(item, find(item.id, event.output_index, item.type) ?? begin(event, item));
  };
  const about = (response: JsonObject) => {
    steps.start(stringIn(response, 'id'), stringIn(response, 'model'));
    steps.counts(usageOf(response.usage));
  };
  /** @param status the one that its event names */
  const finish = (response: JsonObject, status: string | undefined) => {
    about(response);
    const unread = [...items];
    for (const [index, item] of objectsOf(response.output).entries()) {
      const same = unread.findIndex((one) => one.type === item.type);
      const [read] = same === -1 ? [] : unread.splice(same, 1);
      complete(item, read ?? begin({ output_index: index }, item));
    }
    for (const item of items)
      if (item.given && !item.isDone && !item.said) complete({ type: item.type, content: item.given }, item);
    if (items.some(({ call, isDone }) => call && !isDone && !call.hasArguments))
      steps.refuse('a tool call has neither arguments nor an end');
    const isStale = status === 'completed' && items.length > 0 && response.status === 'in_progress';
    // Some servers end a response with the status of its beginning.
    if (isStale) losses.record('answer.status', 'answer detail');
    steps.end(isStale ? 'done' : stopOf(response, status, losses));
  };

  const take = (event: JsonObject, name: string | undefined) => {
    const { response, item } = event;
    const type = String(event.type ?? name);
    if (isObject(response)) about(response);
    switch (type) {
      case 'response.created':
        // llama.cpp repeats it before each piece.
        if (created !== undefined && created !== member(response, 'id')) throw disorder(type);
        created = member(response, 'id');
        return;
      case 'response.output_item.added':
        if (!isObject(item)) throw disorder(type);
        if (!items.some((one) => isSame(one, item))) begin(event, item);
        return;
      case 'response.output_text.delta':
        return steps.text('text', piece(event, 'message'));
      case 'response.output_text.done':
        return steps.text('text', rest(event, 'message', event.text));
      case 'response.refusal.delta':
        return steps.text('refusal', piece(event, 'message'));
      case 'response.refusal.done':
        return steps.text('refusal', rest(event, 'message', event.refusal));
      case 'response.content_part.done':
        if (member(event.part, 'type') !== 'reasoning_text' && isUnsaid(event, 'message'))
          message([event.part]);
        return;
      case 'response.reasoning_summary_part.added':
        if (typeof event.summary_index === 'number' && event.summary_index > 0)
          steps.text('reasoning', '\n\n');
        return;
      case 'response.function_call_arguments.delta':
        itemOf(event, 'function_call').call?.add({ arguments: stringIn(event, 'delta') ?? '' });
        return;
      case 'response.function_call_arguments.done': {
        const { call } = itemOf(event, 'function_call');
        if (call && !call.hasArguments) call.add({ arguments: argumentsText(event.arguments) });
        return;
      }
      case 'response.output_item.done':
        return endItem(event);
      case 'response.completed':
      case 'response.incomplete':
        return finish(isObject(response) ? response : event, type.slice('response.'.length));
      case 'response.done':
        return finish(isObject(response) ? response : event, undefined);
      case 'response.failed':
        return steps.failure(readError(member(response, 'error')));
      case 'error':
        return steps.failure(readErrorBody(event));
    }
    // Servers have several names for thoughts.
    if (/^response\.reasoning\w*\.delta$/.test(type)) steps.text('reasoning', piece(event, 'reasoning'));
    if (/^response\.reasoning\w*\.done$/.test(type))
      steps.text('reasoning', rest(event, 'reasoning', event.text));
    const failure = readError(event.error);
    if (failure.message !== undefined) steps.failure(failure);
  };

  return {
    event(data, name) {
      if (steps.over || data.trim() === '') return;
      isTold ||= isDone(data);
      if (isTold) return;
      for (const event of eventObjects(data)) take(event, name);
    },
    end() {
      if (steps.over) return;
      // Bridges from openai-chat may end with [DONE] alone.
      if (!isTold || items.length === 0) throw incomplete();
      finish({}, undefined);
    },
    document(body) {
      const failure = readError(member(body, 'error'));
      if (failure.message !== undefined) return steps.failure(failure);
      if (!isObject(body) || !Array.isArray(body.output)) throw new NoAnswer('openai-responses');
      finish(body, undefined);
    },
  };
};

/** Some servers say the beginning of an item twice. */
function isSame({ id, callId, isDone }: Item, item: JsonObject): boolean {
  return !isDone && !!id && id === item.id && callId === item.call_id;
}

/** Some servers send the arguments as an object. */
function argumentsText(given: unknown): string {
  return typeof given === 'string' ? given || '{}' : JSON.stringify(given ?? {});
}

/**
 * Why a response ended. A status that is missing or unknown is recorded as a loss: then `told`, or the fact
 * that it ended, counts. Throws for a response that is not complete, or that failed.
 */
function stopOf(response: JsonObject, told: string | undefined, losses: Losses): NeutralStop {
  const { status, error } = response;
  const meant = otherStopNamed(status);
  if (status !== 'incomplete' && meant === 'failed')
    throw new UnreadableAnswer(
      readError(error).message ?? `the answer ended as ${JSON.stringify(status).slice(0, 100)}`,
    );
  if (status !== 'completed' && status !== 'incomplete') losses.record('answer.status', 'answer detail');
  if ((meant === 'done' ? 'completed' : status || told) !== 'incomplete') return 'done';
  const reason = member(response.incomplete_details, 'reason');
  const stop = stopNamed(stops, reason) ?? otherStopNamed(reason);
  if (stop === 'failed') throw new UnreadableAnswer(`the answer ended as ${JSON.stringify(reason)}`);
  if (!stopNamed(stops, reason)) losses.record('answer.incomplete_details', 'answer detail');
  return stop ?? 'length';
}
