import { eventObjects } from '../../../translation/event-objects.ts';
import { disorder, incomplete, stopOf } from '../../../translation/read-answers.ts';
import { WholeText } from '../../../translation/whole-text.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { isObject, type JsonObject, member } from '../../lenient.ts';
import { readError } from '../../model-error.ts';
import { stringIn, typeName } from '../../read-values.ts';
import { stops } from '../stops.ts';
import { countsIn, usageOf } from '../usage.ts';

export const readStream: WireTranslation['readStream'] = (steps, losses) => {
  const read = eventObjects();
  const counts: Record<string, unknown> = {};
  let index = -1;
  /** The type of the open block. */
  let open: unknown;
  const signature = new WholeText();
  let stop: { reason: unknown; sequence: string | undefined } | undefined;

  const begin = (block: unknown, at: unknown) => {
    if (open !== undefined || at !== index + 1) throw disorder('content_block_start');
    index += 1;
    open = member(block, 'type') ?? 'unknown';
    signature.take();
    if (!isObject(block)) throw disorder('content_block_start');
    if (open === 'tool_use') steps.call(block.id, block.name);
    else if (open === 'text') steps.text('text', stringIn(block, 'text') ?? '');
    else if (open === 'thinking') {
      steps.text('reasoning', stringIn(block, 'thinking') ?? '');
      signature.add(stringIn(block, 'signature') ?? '');
    } else if (open === 'redacted_thinking') steps.signature(stringIn(block, 'data') ?? '', true);
    else losses.record(`answer.${typeName(block)}`, 'answer detail');
  };
  const more = (delta: JsonObject) => {
    switch (delta.type) {
      case 'text_delta':
        return steps.text('text', stringIn(delta, 'text') ?? '');
      case 'thinking_delta':
        return steps.text('reasoning', stringIn(delta, 'thinking') ?? '');
      case 'signature_delta':
        signature.add(stringIn(delta, 'signature') ?? '');
        return;
      case 'input_json_delta':
        // A tool that runs at the provider has arguments too.
        if (open === 'tool_use') steps.arguments(stringIn(delta, 'partial_json') ?? '');
        return;
      default:
        losses.record('answer.citations', 'answer detail');
    }
  };
  const endBlock = (at: unknown) => {
    if (open === undefined || at !== index) throw disorder('content_block_stop');
    if (open === 'tool_use') steps.closeCall();
    const proof = signature.take();
    if (open === 'thinking' && proof !== '') steps.signature(proof, false);
    open = undefined;
  };

  return {
    event(data) {
      const event = read(data);
      const { type } = event;
      if (type === 'error') return steps.failure(readError(event.error));
      if (steps.over || type === 'ping') return;
      if (type === 'message_start') {
        const { message } = event;
        if (steps.begun || !isObject(message)) throw disorder('message_start');
        Object.assign(counts, countsIn(message.usage));
        const { output, ...usage } = usageOf(counts);
        steps.start(stringIn(message, 'id'), stringIn(message, 'model'), usage);
        return;
      }
      if (!steps.begun) throw disorder(type);
      if (type === 'content_block_start') begin(event.content_block, event.index);
      else if (type === 'content_block_delta') {
        if (open === undefined || event.index !== index || !isObject(event.delta)) throw disorder(type);
        more(event.delta);
      } else if (type === 'content_block_stop') endBlock(event.index);
      else if (type === 'message_delta') {
        Object.assign(counts, countsIn(event.usage));
        const reason = member(event.delta, 'stop_reason');
        const sequence = member(event.delta, 'stop_sequence');
        if (reason != null) stop = { reason, sequence: typeof sequence === 'string' ? sequence : undefined };
      } else if (type === 'message_stop') {
        if (open !== undefined || !stop) throw disorder(type);
        steps.end(stopOf(stops, stop.reason), usageOf(counts), stop.sequence);
      }
    },
    end() {
      if (!steps.over) throw incomplete();
    },
  };
};
