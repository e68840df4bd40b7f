import type { Losses } from '../../translation/losses.ts';
import { type NeutralStop, type Piece, UnreadableAnswer } from '../../translation/neutral-answer.ts';
import {
  disorder,
  eventObjects,
  incomplete,
  isDone,
  NoAnswer,
  otherStopNamed,
  type Stops,
  stopNamed,
  wordsOfOther,
} from '../../translation/read-answers.ts';
import type { CallPieces } from '../../translation/stream-steps.ts';
import { isObject, type JsonObject, member, objectsOf, stringIn, typeName } from '../lenient.ts';
import { readError, readErrorBody } from '../model-error.ts';
import { countsOf, plainText } from '../openai.ts';
import type { WireTranslation } from '../wire-descriptor.ts';
import { reasoningOf } from './requests.ts';

interface Item {
  id: string | undefined;
  callId: unknown;
  index: unknown;
  type: unknown;
  call?: CallPieces;
  /** What the item had at its beginning: arguments or content. Its pieces count instead, if there are any. */
  given: unknown;
  /** How many characters of it were said, and the last of them. */
  said: number;
  tail: string;
  /** The parts that came as whole texts, and their characters. */
  texts: unknown[];
  whole: number;
  isSigned: boolean;
  isDone: boolean;
}

/**
 * A piece belongs to the item of its id, or the last open one of its type and index, or of its type.
 * What pieces did not say is read from the whole text, the whole item, or the whole response. A whole answer
 * is read as a response that is complete.
 */
export const readAnswer: WireTranslation['read'] = (steps, losses) => {
  const items: Item[] = [];
  let created: unknown;
  let isTold = false;
  /** The words of an event that is none of this wire. */
  let odd: string | undefined;

  const begin = ({ output_index: index }: JsonObject, item: JsonObject): Item => {
    const begun: Item = {
      id: stringIn(item, 'id'),
      callId: item.call_id,
      index,
      type: item.type,
      given: item.arguments ?? item.content,
      said: 0,
      tail: '',
      texts: [],
      whole: 0,
      isSigned: false,
      isDone: false,
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
  const say = (item: Item, type: Piece['type'], text: string) => {
    item.said += text.length;
    item.tail = (item.tail + text).slice(-tailLength);
    steps.text(type, text);
  };
  const piece = (event: JsonObject, of: string, type: Piece['type']) =>
    say(itemOf(event, of), type, plainText([event.delta].flat()) || String(event.delta ?? ''));
  /** Says what the pieces of a whole text have left out. `begun`: how much of it they said. */
  const rest = (item: Item, type: Piece['type'], text: string, begun: number) => {
    if (text.length <= begun) return;
    const isSame = text.slice(0, begun).endsWith(item.tail.slice(item.tail.length - begun || tailLength));
    if (begun > 0 && !isSame) losses.record('answer.text', 'answer detail');
    else say(item, type, text.slice(begun));
  };
  /** A part that is whole. */
  const part = (event: JsonObject, of: string, type: Piece['type'], text: unknown) => {
    const item = itemOf(event, of);
    const { content_index: index = event.summary_index } = event;
    if (typeof text !== 'string' || item.texts.includes(index)) return;
    rest(item, type, text, Math.max(0, item.said - item.whole));
    item.texts.push(index);
    item.whole += text.length;
  };
  /** Reads what the pieces of an item did not say. */
  const complete = (item: JsonObject, read: Item) => {
    if (read.call) {
      // Some servers give the id and the name only here.
      read.call.add({ id: item.call_id ?? item.id, name: read.call.name === '' ? item.name : undefined });
      const given = argumentsText(item.arguments || (read.call.hasArguments ? '' : read.given));
      if (!read.call.complete(given)) losses.record('answer.arguments', 'answer detail');
      read.call.end();
    }
    if (item.type === 'message') message(item.content, read);
    if (item.type === 'reasoning') {
      const { text, signature, redacted = false } = reasoningOf(item);
      rest(read, 'reasoning', text, read.said);
      if (signature && !read.isSigned) steps.signature(signature, redacted);
      read.isSigned = true;
    }
    read.isDone = true;
  };
  const message = (content: unknown, read: Item) => {
    let before = 0;
    for (const part of typeof content === 'string' ? [{ text: content }] : objectsOf(content)) {
      if (objectsOf(part.annotations).length > 0) losses.record('answer.annotations', 'answer detail');
      const text = wholeOf(part);
      rest(read, part.type === 'refusal' ? 'refusal' : 'text', text, Math.max(0, read.said - before));
      before += text.length;
    }
  };
  const endItem = (event: JsonObject) => {
    const { item } = event;
    if (!isObject(item)) throw disorder(event.type);
    complete(item, find(item.id, event.output_index, item.type) ?? begin(event, item));
  };
  const about = (response: JsonObject) => {
    steps.start(stringIn(response, 'id'), stringIn(response, 'model'));
    steps.counts(countsOf(response.usage));
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
        return piece(event, 'message', 'text');
      case 'response.output_text.done':
        return part(event, 'message', 'text', event.text);
      case 'response.refusal.delta':
        return piece(event, 'message', 'refusal');
      case 'response.refusal.done':
        return part(event, 'message', 'refusal', event.refusal);
      case 'response.content_part.done': {
        const kind = member(event.part, 'type');
        if (isObject(event.part) && kind !== 'reasoning_text')
          part(event, 'message', kind === 'refusal' ? 'refusal' : 'text', wholeOf(event.part));
        return;
      }
      case 'response.reasoning_summary_part.added':
        if (typeof event.summary_index === 'number' && event.summary_index > 0)
          piece({ ...event, delta: '\n\n' }, 'reasoning', 'reasoning');
        return;
      case 'response.function_call_arguments.delta':
        itemOf(event, 'function_call').call?.add({ arguments: stringIn(event, 'delta') ?? '' });
        return;
      case 'response.function_call_arguments.done': {
        if (itemOf(event, 'function_call').call?.complete(argumentsText(event.arguments)) === false)
          losses.record('answer.arguments', 'answer detail');
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
        return steps.failure(readError(member(response, 'error') ?? event.error));
      case 'error':
        return steps.failure(readErrorBody(event));
    }
    // Servers have several names for thoughts.
    if (/^response\.reasoning\w*\.delta$/.test(type)) piece(event, 'reasoning', 'reasoning');
    if (/^response\.reasoning\w*\.done$/.test(type)) part(event, 'reasoning', 'reasoning', event.text);
    const failure = readError(event.error);
    if (failure.message !== undefined) steps.failure(failure);
    else if (!type.startsWith('response.')) odd ??= wordsOfOther(event, heads);
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
      if (!isTold || items.length === 0) throw incomplete(odd);
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

const heads: ReadonlySet<string> = new Set(['type', 'sequence_number']);

/** Characters by which a whole text is known to go on as its pieces did. */
const tailLength = 100;

/** The text of a part of a message. */
function wholeOf(part: JsonObject): string {
  return stringIn(part, part.type === 'refusal' ? 'refusal' : 'text') ?? '';
}

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

/** Why a response is incomplete. */
const stops: Stops = { max_output_tokens: 'length', content_filter: 'refused' };
