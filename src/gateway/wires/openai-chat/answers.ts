import type { Losses } from '../../translation/losses.ts';
import {
  type NeutralAnswer,
  type NeutralEvent,
  type NeutralStop,
  type NeutralUsage,
  WholeText,
} from '../../translation/neutral-answer.ts';
import { freeFormInput, isFreeFormTool, type NeutralRequest } from '../../translation/neutral-request.ts';
import {
  eventReader,
  incomplete,
  isDone,
  NoAnswer,
  otherStopNamed,
  type Stops,
  stopOf,
  wordsOfOther,
} from '../../translation/read-answers.ts';
import type { CallPieces, StreamSteps } from '../../translation/stream-steps.ts';
import {
  isNothing,
  isObject,
  type JsonObject,
  member,
  objectsOf,
  parsed,
  stringIn,
  typeName,
  words,
} from '../lenient.ts';
import { type ModelError, readError } from '../model-error.ts';
import { countsOf, plainText } from '../openai.ts';
import type { WireTranslation } from '../wire-descriptor.ts';

/** Servers give the model's thoughts under one of these names, or the same thoughts under several. */
const thoughtNames = words(
  'reasoning_content reasoning thinking reasoning_text reasoning_details thinking_blocks',
);

const known = new Set([...words('role content refusal tool_calls toolCalls function_call'), ...thoughtNames]);

/** What a chunk may have beside its choices without saying anything. */
const heads = words(
  'id object created model choices usage system_fingerprint service_tier provider type finish_reason',
);

const callNames = /^tool_?calls$/i;

/** Members that say the same under another name. */
function kindOf(name: string): string {
  if (thoughtNames.has(name)) return 'thoughts';
  return name === 'function_call' || callNames.test(name) ? 'tool_calls' : name;
}

/** Reads the chunks of a stream. A whole answer is read as its only chunk. */
export const readAnswer: WireTranslation['read'] = (steps, losses) => {
  const called = callsOf(steps);
  let reason: unknown;
  const said = new Set<string>();
  let whole: JsonObject | undefined;
  /** Of another choice, until the first one is seen. Clients read one choice, whoever asked for more. */
  let others: JsonObject[] | undefined = [];
  /** The words of a chunk that has neither choices nor usage. */
  let odd: string | undefined;

  const say = (message: JsonObject, isWhole: boolean) => {
    const thought = thoughtIn(message);
    steps.text('reasoning', thought);
    readContent(message.content, { steps, losses, called });
    steps.text('refusal', stringIn(message, 'refusal') ?? '');
    const given = message.tool_calls ?? message.toolCalls;
    const calls = objectsOf([typeof given === 'string' ? parsed(given) : given].flat());
    // In a whole message each piece is a call, whatever its number.
    for (const [index, piece] of calls.entries()) called(isWhole ? { ...piece, index } : piece);
    // The form of calls before there were several.
    if (calls.length === 0 && isObject(message.function_call)) called({ function: message.function_call });
    for (const [name, value] of Object.entries(message)) {
      if (value === '' || isNothing(value) || name === 'role') continue;
      said.add(kindOf(name));
      // Thoughts that are no text are encrypted ones.
      const isUnread =
        (thought === '' && thoughtNames.has(name)) || (callNames.test(name) && calls.length === 0);
      if (!known.has(name) || isUnread) losses.record(`answer.${name.slice(0, 100)}`, 'answer detail');
    }
  };

  const take = (chunk: JsonObject) => {
    const failure = failureIn(chunk);
    if (failure) return steps.failure(failure);
    steps.start(stringIn(chunk, 'id'), stringIn(chunk, 'model'));
    const counted = usageIn(chunk);
    if (counted) steps.counts(countsOf(counted));
    const choices = objectsOf([chunk.choices].flat());
    if (choices.length === 0 && !counted) odd ??= wordsOfOther(chunk, heads);
    for (const choice of choices) {
      if ((Number(choice.index) || 0) === 0) {
        if (others?.length) losses.record('answer.choices', 'answer detail');
        others = undefined;
        readChoice(choice);
      } else if (!others || (others[0] && others[0].index !== choice.index))
        losses.record('answer.choices', 'answer detail');
      else others.push(structuredClone(choice));
    }
  };
  const readChoice = (choice: JsonObject) => {
    if (choice.logprobs != null) losses.record('answer.logprobs', 'answer detail');
    if (isObject(choice.message)) whole = choice.message;
    if (isObject(choice.delta)) say(choice.delta, false);
    else if (typeof (choice.delta ?? choice.text) === 'string')
      say({ content: choice.delta ?? choice.text }, false);
    // Some servers have calls beside the delta.
    if (choice.tool_calls !== undefined) say({ tool_calls: choice.tool_calls }, false);
    reason = choice.finish_reason || reason;
  };

  /** @param isTold whether the server said that the answer is complete */
  const end = (isTold: boolean) => {
    if (steps.over) return;
    for (const choice of others ?? []) readChoice(choice);
    // Some servers repeat the whole message at the end, or in each chunk what they have of it.
    const unsaid = Object.entries(whole ?? {}).filter(([name]) => !said.has(kindOf(name)));
    say(Object.fromEntries(unsaid), true);
    if (reason === undefined && (odd !== undefined || !(isTold && said.size > 0))) throw incomplete(odd);
    steps.end(stopOf(stops, reason, losses, 'answer.finish_reason'));
  };

  const readEvent = eventReader(steps, losses, take);
  return {
    event(data) {
      if (steps.over || data.trim() === '') return;
      if (isDone(data)) return end(true);
      readEvent(data);
    },
    // Not every server ends with [DONE].
    end: () => end(false),
    document(body) {
      const { choices, ...rest } = isObject(body) ? body : {};
      const [first, ...more] = objectsOf([choices].flat());
      if (!isObject(body) || (!first && !failureIn(body))) throw new NoAnswer('openai-chat');
      if (more.length > 0) losses.record('answer.choices', 'answer detail');
      take(first ? { ...rest, choices: [first] } : body);
      end(true);
    },
  };
};

/** The usage of a chunk: beside its choices, in one of them, or where Groq puts it. */
function usageIn(chunk: JsonObject): JsonObject | undefined {
  const inChoices = objectsOf(chunk.choices).map((choice) => choice.usage);
  return [chunk.usage, ...inChoices, member(chunk.x_groq, 'usage')].find(isObject);
}

interface Call {
  index: number | undefined;
  id: string;
  pieces: CallPieces;
}

interface CallPiece {
  index: number | undefined;
  id: string;
  name: string;
  arguments: string;
}

/**
 * Reads pieces of tool calls. To which call a piece belongs is decided by its index, id, name and position
 * together: servers number all calls 0 or not at all, leave ids out, change them in each piece, or repeat
 * names.
 */
function callsOf(steps: StreamSteps): (piece: JsonObject) => void {
  const calls: Call[] = [];
  return (given) => {
    const piece = pieceOf(given);
    const { index, id } = piece;
    const last = calls.at(-1);
    // Some servers end arguments that are whole with an empty object.
    const isNothing = piece.arguments === '' || (isEmpty(piece.arguments) && last?.pieces.isWhole);
    if (id === '' && piece.name === '' && isNothing) return;
    let call = callOf(calls, piece);
    if (!call) {
      call = { index, id, pieces: steps.call() };
      calls.push(call);
      // A second call of the same tool may come without its name.
      if (piece.name === '' && id === '' && last && last.index === index) piece.name = last.pieces.name;
    }
    if (call.id === '') call.id = id;
    call.pieces.add({ id, name: piece.name, arguments: piece.arguments });
  };
}

/** The call that a piece continues; undefined if it begins one. */
function callOf(calls: readonly Call[], piece: CallPiece): Call | undefined {
  const { index, id, name } = piece;
  const sameIndex = index === undefined ? calls : calls.filter((call) => call.index === index);
  const known = id === '' ? undefined : sameIndex.findLast((call) => call.id === id);
  if (known) return isAnother(known, piece) && !known.pieces.isRepeated(piece.arguments) ? undefined : known;
  const last = sameIndex.at(-1);
  const begins = /^\s*\{/.test(piece.arguments);
  if (!last) {
    // Some servers count pieces.
    const before = calls.at(-1);
    if (id !== '' || name !== '' || !before) return undefined;
    return begins === before.pieces.hasArguments || before.pieces.isWhole ? undefined : before;
  }
  if (id !== '' && last.id !== '') {
    // Some servers give each piece an id.
    if (index !== undefined && name === last.pieces.name && begins && !last.pieces.hasArguments) return last;
    // Another id begins another call, unless the arguments clearly go on.
    const isNew = (name !== '' && (begins || piece.arguments === '')) || (begins && last.pieces.isWhole);
    return isNew ? undefined : last;
  }
  if (isAnother(last, piece)) {
    const isRepeat = name === '' && last.pieces.isRepeated(piece.arguments);
    return isRepeat ? last : undefined;
  }
  const { isWhole, name: before } = last.pieces;
  const isOther = name !== '' && before !== '' && name !== before;
  return isOther && isWhole && piece.arguments === '' ? undefined : last;
}

/** Whether a piece begins arguments, although those of the call are whole. */
function isAnother({ pieces }: Call, piece: CallPiece): boolean {
  const begins = /^\s*\{/.test(piece.arguments);
  const isSame = piece.name === pieces.name && !isEmpty(piece.arguments);
  const fills = pieces.isPlaceholder && (piece.name === '' || isSame);
  return begins && pieces.hasArguments && pieces.isWhole && !fills;
}

function isEmpty(given: string): boolean {
  return /^\s*\{\s*\}\s*$/.test(given);
}

function pieceOf(given: JsonObject): CallPiece {
  const { index } = given;
  const number = index === undefined || index === null || index === '' ? Number.NaN : Number(index);
  const called = [given.function, given.custom].find(isObject) ?? given;
  const text = called.arguments ?? called.input ?? called.parameters;
  return {
    index: Number.isFinite(number) ? number : undefined,
    // Mistral's servers have sent this text for none.
    id:
      given.id === 'null'
        ? ''
        : typeof given.id === 'number'
          ? String(given.id)
          : (stringIn(given, 'id') ?? ''),
    name: stringIn(called, 'name') ?? stringIn(given, 'function') ?? '',
    arguments:
      typeof text === 'string' ? text : text === undefined || text === null ? '' : JSON.stringify(text),
  };
}

interface Reading {
  steps: StreamSteps;
  losses: Losses;
  called(piece: JsonObject): void;
}

/** Reads a content: a text, or parts of which some are thoughts or calls. */
function readContent(content: unknown, reading: Reading): void {
  if (content === undefined || content === null) return;
  for (const part of Array.isArray(content) ? content : [content]) {
    if (isObject(part)) readPart(part, reading);
    else if (part !== null) reading.steps.text('text', String(part));
  }
}

function readPart(part: JsonObject, { steps, losses, called }: Reading): void {
  const { type } = part;
  const { value } = isObject(part.text) ? part.text : { value: part.text ?? part.content };
  const text = typeof value === 'string' ? value : undefined;
  if (type === 'thinking' || type === 'reasoning') steps.text('reasoning', thoughtOf(part));
  else if (type === 'refusal') steps.text('refusal', stringIn(part, 'refusal') ?? '');
  else if (calledAs.has(type)) called({ ...part, id: part.id ?? part.call_id });
  else if (text === undefined) losses.record(`answer.content.${typeName(part)}`, 'answer detail');
  else steps.text('text', text);
}

const calledAs: ReadonlySet<unknown> = new Set(['tool_use', 'tool_call', 'function_call']);

function thoughtIn(message: JsonObject): string {
  for (const name of thoughtNames) {
    const value = message[name];
    if (value === undefined || value === null) continue;
    const parts = [value].flat().map((one) => (isObject(one) ? thoughtOf(one) : String(one ?? '')));
    if (parts.join('') !== '') return parts.join('');
  }
  return '';
}

function thoughtOf(part: JsonObject): string {
  for (const name of ['thinking', 'reasoning', 'text', 'content', 'summary']) {
    const text = plainText(part[name]);
    if (text !== '') return text;
  }
  return '';
}

/** The error that an answer or a chunk of status 200 carries, in each of the forms that servers use. */
function failureIn(chunk: JsonObject): ModelError | undefined {
  const { error, base_resp: response } = chunk;
  // MiniMax tells each success too.
  if (Number(member(response, 'status_code') ?? 0) !== 0) return readError(response);
  if (Number(chunk.error_code ?? 0) !== 0) return readError(chunk);
  if (error !== undefined && error !== null && error !== false && error !== '') {
    const found = readError(error);
    return { ...found, message: found.message ?? readError(chunk).message ?? 'it failed' };
  }
  for (const { error, finish_reason: reason } of objectsOf(chunk.choices)) {
    if (isObject(error)) return readError(error);
    if (otherStopNamed(reason) === 'failed')
      return readError({ message: `the answer ended as ${JSON.stringify(reason)}` });
  }
  if (chunk.choices !== undefined) return undefined;
  // Servers put their words under many names. A chunk without choices has no others.
  const found = readError(chunk);
  return found.message === undefined && chunk.object !== 'error' ? undefined : found;
}

const stops: Stops = {
  stop: 'done',
  eos: 'done',
  tool_calls: 'tools',
  function_call: 'tools',
  length: 'length',
  content_filter: 'refused',
};

export const writeAnswer: WireTranslation['writeAnswer'] = (answer, { request, at, losses }) => {
  const texts = (type: 'text' | 'refusal' | 'reasoning') =>
    answer.parts.flatMap((part) => (part.type === type ? [part.text] : [])).join('');
  const calls = answer.parts.flatMap((part) => (part.type === 'call' ? [writtenCall(part, request)] : []));
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

function writtenCall(
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
  const send = (data: JsonObject | string) => emit({ event: undefined, data });
  const chunk = (choices: JsonObject[], usage: JsonObject | null = null) =>
    send({ ...begun, choices, ...(request.usageAsked && { usage }) });
  const delta = (delta: JsonObject, finish_reason: string | null = null) =>
    chunk([{ index: 0, delta, logprobs: null, finish_reason }]);
  const call = (piece: JsonObject) => delta({ tool_calls: [{ index, ...piece }] });

  const take = (step: NeutralEvent) => {
    switch (step.type) {
      case 'start':
        begun = head(step, 'chat.completion.chunk', request.model, at);
        return delta({ role: 'assistant', content: '' });
      case 'text':
        return delta({ content: step.text });
      case 'refusal':
        return delta({ refusal: step.text });
      case 'reasoning':
        return delta({ reasoning_content: step.text });
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
        return call({ function: { arguments: step.text } });
      case 'callEnd':
        if (input) call({ custom: { input: freeFormInput(input.take()) } });
        input = undefined;
        return;
      case 'end':
        delta({}, finishReasons[step.stop]);
        if (request.usageAsked && Object.keys(step.usage).length > 0) chunk([], writtenUsage(step.usage));
        return send('[DONE]');
      case 'failure': {
        const type = step.overloaded ? 'server_error' : 'api_error';
        return send({ error: { message: step.message, type, param: null, code: step.code ?? null } });
      }
    }
  };
  return { take, held: () => input?.held ?? 0 };
};
