import type { CallPieces } from '../../../translation/call-pieces.ts';
import { eventReader } from '../../../translation/event-objects.ts';
import type { NeutralUsage } from '../../../translation/neutral-answer.ts';
import {
  disorder,
  incomplete,
  isDone,
  NoAnswer,
  type Stops,
  stopOf,
  wordsOfOther,
} from '../../../translation/read-answers.ts';
import { WholeText } from '../../../translation/whole-text.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import {
  isObject,
  type JsonObject,
  member,
  objectsOf,
  stringIn,
  tokensIn,
  typeName,
  words,
} from '../../lenient.ts';
import { readError, readErrorBody } from '../../model-error.ts';
import { fields } from '../../openai.ts';

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
  const finish = () => {
    if (!stop && !isSaid) throw disorder('message_stop');
    sign();
    for (const block of blocks) endCall(block);
    steps.end(stopOf(stops, stop?.reason, losses, 'answer.stop_reason'), stop?.sequence);
  };

  const readEvent = eventReader(steps, losses, (event, name) => {
    const { type = name } = event;
    const failure = readError(event.error);
    if (type === 'error' || failure.message !== undefined)
      return steps.failure(failure.message === undefined ? readErrorBody(event) : failure);
    if (type === 'message_start') {
      const { message } = event;
      if (!isObject(message) || (started !== undefined && started !== message.id))
        throw disorder('message_start');
      started = message.id;
      // Its output tokens cover only the beginning of the answer.
      count({ ...Object(message.usage), output_tokens: undefined });
      steps.start(stringIn(message, 'id'), stringIn(message, 'model'), steps.usage);
      // Bridges put a whole answer into its beginning, or the first block.
      for (const [index, block] of contentsOf(message.content).entries())
        if (index >= blocks.length) begin(block, index);
      return stopWith(message);
    }
    if (!ofMessage.has(type)) odd ??= wordsOfOther(event, heads);
    // llama.cpp leaves the beginning out if its first piece is half a character.
    else if (type === 'content_block_start') begin(event.content_block, event.index);
    else if (type === 'content_block_delta' && isObject(event.delta)) more(event.delta, event.index);
    else if (type === 'content_block_stop') endBlock(event.index);
    else if (type === 'message_delta') {
      stopWith(event.delta);
      count(event.usage);
    } else if (type === 'message_stop') finish();
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
      stopWith(body);
      count(body.usage);
      steps.start(stringIn(body, 'id'), stringIn(body, 'model'), steps.usage);
      for (const [index, block] of contentsOf(content).entries()) {
        begin(block, index);
        endBlock(index);
      }
      sign();
      steps.end(stopOf(stops, stop?.reason, losses, 'answer.stop_reason'), stop?.sequence);
    },
  };
};

function contentsOf(content: unknown): JsonObject[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : objectsOf(content);
}

const heads: ReadonlySet<string> = new Set(['type']);

/** Other events, such as `ping`, say nothing of the answer. */
const ofMessage: ReadonlySet<unknown> = words(
  'content_block_start content_block_delta content_block_stop message_delta message_stop',
);

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
