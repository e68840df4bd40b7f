import type { CallPieces } from '../../../translation/call-pieces.ts';
import { eventObjects } from '../../../translation/event-objects.ts';
import { disorder, incomplete, stopOf } from '../../../translation/read-answers.ts';
import { WholeText } from '../../../translation/whole-text.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { isObject, type JsonObject, member } from '../../lenient.ts';
import { readError, readErrorBody } from '../../model-error.ts';
import { stringIn, typeName } from '../../read-values.ts';
import { stops } from '../stops.ts';
import { countsIn, usageOf } from '../usage.ts';

interface Block {
  index: unknown;
  type: unknown;
  /** Of a block that is a call. */
  call?: CallPieces;
  signature: WholeText;
}

/** A piece belongs to the last block of its index; without such a block, to the last one of its type. */
export const readStream: WireTranslation['readStream'] = (steps, losses) => {
  const read = eventObjects();
  const counts: Record<string, unknown> = {};
  const blocks: Block[] = [];
  let stop: { reason: unknown; sequence: string | undefined } | undefined;

  const begin = (content: unknown, index: unknown) => {
    if (!isObject(content)) throw disorder('content_block_start');
    sign();
    const { type } = content;
    const block: Block = { index, type, signature: new WholeText() };
    blocks.push(block);
    if (type === 'tool_use') {
      block.call = steps.call().add({ id: content.id, name: content.name });
      // Some servers send the whole input here, most an empty object.
      const { input } = content;
      const isInput =
        typeof input === 'string' ? input !== '' : isObject(input) && Object.keys(input).length > 0;
      if (isInput) block.call.add({ arguments: typeof input === 'string' ? input : JSON.stringify(input) });
    } else if (type === 'text') steps.text('text', stringIn(content, 'text') ?? '');
    else if (type === 'thinking') {
      steps.text('reasoning', stringIn(content, 'thinking') ?? '');
      block.signature.add(stringIn(content, 'signature') ?? '');
    } else if (type === 'redacted_thinking') steps.signature(stringIn(content, 'data') ?? '', true);
    else losses.record(`answer.${typeName(content)}`, 'answer detail');
  };
  const blockOf = (index: unknown, type: string): Block | undefined =>
    blocks.findLast((block) => block.type === type && block.index === index) ??
    blocks.findLast((block) => block.type === type);
  const more = (delta: JsonObject, index: unknown) => {
    switch (delta.type) {
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
    const last = blocks.at(-1);
    const proof = last?.signature.take() ?? '';
    if (proof !== '') steps.signature(proof, false);
  };
  const finish = () => {
    if (!stop && blocks.length === 0) throw disorder('message_stop');
    sign();
    steps.end(stopOf(stops, stop?.reason, losses, 'answer.stop_reason'), usageOf(counts), stop?.sequence);
  };

  return {
    event(data) {
      const end = data.trim();
      if (steps.over || end === '' || end === '[DONE]') return;
      const event = read(data);
      const { type } = event;
      const failure = readError(event.error);
      if (type === 'error' || failure.message !== undefined)
        return steps.failure(failure.message === undefined ? readErrorBody(event) : failure);
      if (type === 'message_start') {
        const { message } = event;
        if (steps.begun || !isObject(message)) throw disorder('message_start');
        Object.assign(counts, countsIn(message.usage));
        const { output, ...usage } = usageOf(counts);
        return steps.start(stringIn(message, 'id'), stringIn(message, 'model'), usage);
      }
      if (type === 'ping') return;
      if (!steps.begun) throw disorder(type);
      if (type === 'content_block_start') begin(event.content_block, event.index);
      else if (type === 'content_block_delta' && isObject(event.delta)) more(event.delta, event.index);
      else if (type === 'content_block_stop') {
        blocks.findLast((block) => block.index === event.index)?.call?.end();
        if (blocks.at(-1)?.index === event.index) sign();
      } else if (type === 'message_delta') {
        Object.assign(counts, countsIn(event.usage));
        const reason = member(event.delta, 'stop_reason');
        const sequence = member(event.delta, 'stop_sequence');
        if (reason) stop = { reason, sequence: typeof sequence === 'string' ? sequence : undefined };
      } else if (type === 'message_stop') finish();
    },
    end() {
      if (steps.over) return;
      if (!stop) throw incomplete();
      finish();
    },
  };
};
