import type { Losses } from '../../translation/losses.ts';
import {
  type NeutralAnswer,
  type NeutralEvent,
  type NeutralStop,
  type NeutralUsage,
  WholeText,
} from '../../translation/neutral-answer.ts';
import type { ModelPart, NeutralRequest } from '../../translation/neutral-request.ts';
import {
  disorder,
  eventReader,
  incomplete,
  isDone,
  NoAnswer,
  type Stops,
  stopOf,
  wordsOfOther,
} from '../../translation/read-answers.ts';
import type { CallPieces } from '../../translation/stream-steps.ts';
import {
  fields,
  isObject,
  type JsonObject,
  member,
  objectsOf,
  stringIn,
  tokensIn,
  typeName,
} from '../lenient.ts';
import { readError, readErrorBody } from '../model-error.ts';
import { argumentsObject } from '../openai.ts';
import type { WireTranslation } from '../wire-descriptor.ts';

interface Block {
  index: unknown;
  type: unknown;
  /** Of a block that is a call. */
  call?: CallPieces;
  /** What the block had at its beginning. Its pieces count instead, if there are any. */
  input: string;
  signature: WholeText;
}

/** The kind of a delta by the name of its text. */
const kinds: Readonly<Record<string, string>> = {
  text: 'text_delta',
  thinking: 'thinking_delta',
  partial_json: 'input_json_delta',
};

/**
 * A piece belongs to the last block of its index; without such a block, to the last one of its type. A whole
 * answer is read as its blocks.
 */
export const readAnswer: WireTranslation['read'] = (steps, losses) => {
  const counts: NeutralUsage & { plain?: number } = {};
  const blocks: Block[] = [];
  let isSaid = false;
  let isTold = false;
  let started: unknown;
  /** The words of an event that is none of this wire. */
  let odd: string | undefined;
  let stop: { reason: unknown; sequence: string | undefined } | undefined;

  const begin = (content: unknown, index: unknown) => {
    if (!isObject(content)) throw disorder('content_block_start');
    sign();
    isSaid = true;
    const { type } = content;
    const block: Block = { index, type, input: inputOf(content.input), signature: new WholeText() };
    blocks.push(block);
    if (type === 'tool_use') block.call = steps.call().add({ id: content.id, name: content.name });
    else if (type === 'text') {
      steps.text('text', stringIn(content, 'text') ?? '');
      if (objectsOf(content.citations).length > 0) losses.record('answer.citations', 'answer detail');
    } else if (type === 'thinking') {
      steps.text('reasoning', stringIn(content, 'thinking') ?? '');
      block.signature.add(stringIn(content, 'signature') ?? '');
    } else if (type === 'redacted_thinking') steps.signature(stringIn(content, 'data') ?? '', true);
    else losses.record(`answer.${typeName(content)}`, 'answer detail');
  };
  const blockOf = (index: unknown, type: string): Block | undefined =>
    blocks.findLast((block) => block.type === type && block.index === index) ??
    blocks.findLast((block) => block.type === type);
  const more = (delta: JsonObject, index: unknown) => {
    isSaid = true;
    // Some servers leave out what kind it is.
    switch (delta.type ?? Object.keys(delta).map((name) => kinds[name])[0]) {
      case 'text_delta':
        return steps.text('text', stringIn(delta, 'text') ?? '');
      case 'thinking_delta':
        return steps.text('reasoning', stringIn(delta, 'thinking') ?? '');
      case 'signature_delta':
        blockOf(index, 'thinking')?.signature.add(stringIn(delta, 'signature') ?? '');
        return;
      case 'input_json_delta': {
        // A tool that runs at the provider has arguments too.
        const other = blocks.findLast((block) => block.index === index);
        if (other && other.type !== 'tool_use' && other.type !== 'text') return;
        const call = blockOf(index, 'tool_use')?.call;
        if (!call) throw disorder('input_json_delta');
        const { partial_json: piece } = delta;
        call.add({ arguments: isObject(piece) ? JSON.stringify(piece) : String(piece ?? '') });
        return;
      }
      default:
        losses.record('answer.citations', 'answer detail');
    }
  };
  /** Tells the signature of the last block, which other parts would separate from its text. */
  const sign = () => {
    const proof = blocks.at(-1)?.signature.take() ?? '';
    if (proof !== '') steps.signature(proof, false);
  };
  const endCall = ({ call, input }: Block) => {
    if (!call?.hasArguments) call?.add({ arguments: input });
    call?.end();
  };
  const endBlock = (index: unknown) => {
    const block = blocks.findLast((one) => one.index === index);
    if (block) endCall(block);
    if (block === blocks.at(-1)) sign();
  };
  /** Events have different counts. `input_tokens` excludes cached tokens: the prompt is a sum of three. */
  const count = (usage: unknown) => {
    const of = (name: string) => tokensIn(usage, name);
    Object.assign(
      counts,
      fields({
        plain: of('input_tokens'),
        cacheRead: of('cache_read_input_tokens'),
        cacheWrite: of('cache_creation_input_tokens'),
        output: of('output_tokens'),
        reasoning: tokensIn(member(usage, 'output_tokens_details'), 'thinking_tokens'),
      }),
    );
    const { plain, ...others } = counts;
    const { cacheRead = 0, cacheWrite = 0 } = others;
    steps.counts({ ...others, ...(plain !== undefined && { input: plain + cacheRead + cacheWrite }) });
  };
  const stopWith = (holder: unknown) => {
    const sequence = member(holder, 'stop_sequence');
    const reason = member(holder, 'stop_reason');
    if (reason) stop = { reason, sequence: typeof sequence === 'string' ? sequence : undefined };
  };
  const start = (message: JsonObject) => {
    // Its output tokens cover only the beginning of a stream.
    count({ ...Object(message.usage), output_tokens: undefined });
    steps.start(stringIn(message, 'id'), stringIn(message, 'model'), steps.usage);
    // Bridges put a whole answer into its beginning, or the first block.
    for (const [index, block] of contentsOf(message.content).entries())
      if (index >= blocks.length) begin(block, index);
    stopWith(message);
  };
  const finish = () => {
    sign();
    for (const block of blocks) endCall(block);
    steps.end(stopOf(stops, stop?.reason, losses, 'answer.stop_reason'), stop?.sequence);
  };

  const readEvent = eventReader(steps, losses, (event, name) => {
    const { type = name } = event;
    const failure = readError(event.error);
    if (type === 'error' || failure.message !== undefined)
      return steps.failure(failure.message === undefined ? readErrorBody(event) : failure);
    switch (type) {
      case 'message_start': {
        const { message } = event;
        if (!isObject(message) || (started !== undefined && started !== message.id)) throw disorder(type);
        started = message.id;
        return start(message);
      }
      // llama.cpp leaves the beginning out if its first piece is half a character.
      case 'content_block_start':
        return begin(event.content_block, event.index);
      case 'content_block_delta':
        return isObject(event.delta) ? more(event.delta, event.index) : undefined;
      case 'content_block_stop':
        return endBlock(event.index);
      case 'message_delta':
        stopWith(event.delta);
        return count(event.usage);
      case 'message_stop':
        if (!stop && !isSaid) throw disorder(type);
        return finish();
      default:
        // Other events, such as `ping`, say nothing of the answer.
        odd ??= wordsOfOther(event, heads);
    }
  });

  return {
    event(data, name) {
      if (steps.over || data.trim() === '') return;
      isTold ||= isDone(data);
      if (isTold) return;
      readEvent(data, name);
    },
    end() {
      if (steps.over) return;
      // Bridges from openai-chat may end with [DONE] alone.
      if (!stop && !(isTold && isSaid)) throw incomplete(odd);
      finish();
    },
    document(body) {
      const failure = readError(member(body, 'error'));
      if (failure.message !== undefined) return steps.failure(failure);
      const { content } = isObject(body) ? body : {};
      if (!isObject(body) || !(Array.isArray(content) || typeof content === 'string'))
        throw new NoAnswer('anthropic-messages');
      start(body);
      count(body.usage);
      finish();
    },
  };
};

function contentsOf(content: unknown): JsonObject[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : objectsOf(content);
}

const heads: ReadonlySet<string> = new Set(['type']);

/** Some servers send the whole input of a call at its beginning; most send an empty object. */
function inputOf(input: unknown): string {
  if (typeof input === 'string') return input;
  return isObject(input) && Object.keys(input).length > 0 ? JSON.stringify(input) : '';
}

const stops: Stops = {
  end_turn: 'done',
  tool_use: 'tools',
  max_tokens: 'length',
  stop_sequence: 'sequence',
  refusal: 'refused',
  model_context_window_exceeded: 'context',
};

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

type OpenBlock = 'text' | 'thinking' | 'tool_use';

/**
 * As the API itself does, it checks the arguments of a call before it gives them away: clients fail if they
 * are no JSON, and run a part of those that were cut. Meanwhile empty pieces show that more arrives.
 */
export const writeStream: WireTranslation['writeStream'] = ({ request, losses }, emit) => {
  const whole = new WholeText();
  let index = -1;
  let open: OpenBlock | undefined;
  const event = (type: string, data: JsonObject = {}) => emit({ event: type, data: { type, ...data } });
  const delta = (delta: JsonObject) => event('content_block_delta', { index, delta });
  const close = () => {
    if (open === undefined) return;
    open = undefined;
    event('content_block_stop', { index });
  };
  const begin = (block: OpenBlock, content: JsonObject) => {
    close();
    open = block;
    index += 1;
    event('content_block_start', { index, content_block: content });
  };
  const inBlock = (block: OpenBlock, content: JsonObject) => {
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
        return delta({ type: 'text_delta', text: step.text });
      case 'reasoning':
        inBlock('thinking', { type: 'thinking', thinking: '', signature: '' });
        return delta({ type: 'thinking_delta', thinking: step.text });
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
        return delta({ type: 'input_json_delta', partial_json: '' });
      case 'callEnd': {
        const text = whole.take();
        const given = argumentsObject(text, losses);
        const partial_json = given.malformed === text ? JSON.stringify(given) : text;
        delta({ type: 'input_json_delta', partial_json });
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
