import { ByteStore } from '../../../base/byte-store.ts';
import { modelAnswers } from '../../../bounds/model.ts';
import {
  eventsOf,
  type NeutralAnswer,
  type NeutralEvent,
  type NeutralUsage,
  UnreadableAnswer,
} from '../../translation/neutral-answer.ts';
import { freeFormInput, type NeutralRequest, toolNamed } from '../../translation/neutral-request.ts';
import { type JsonObject, JsonText, member, partsOf } from '../lenient.ts';
import type { WireTranslation } from '../wire-descriptor.ts';
import { reasoningItem } from './requests.ts';

/** The end of a stream has the whole response. */
export const writeAnswer: WireTranslation['writeAnswer'] = (answer, asked) => {
  let last: unknown;
  const { take } = writeStream(asked, ({ data }) => {
    last = data;
  });
  for (const event of eventsOf(answer)) take(event);
  return member(last, 'response') as JsonObject;
};

/** The members of a response that are known at its beginning. */
function responseHead(
  { id, model }: Pick<NeutralAnswer, 'id' | 'model'>,
  { model: asked, parallelCalls }: NeutralRequest,
  at: number,
): JsonObject {
  return {
    id: id ?? 'resp_offsite',
    object: 'response',
    created_at: Math.floor(at / 1000),
    model: model ?? asked,
    error: null,
    incomplete_details: null,
    parallel_tool_calls: parallelCalls ?? true,
  };
}

function itemId(head: JsonObject, index: number): string {
  return `item_${String(head.id)}_${index}`;
}

/** The whole response, as it ends. */
function endOf(
  head: JsonObject,
  output: readonly JsonObject[],
  { stop, usage }: Pick<NeutralAnswer, 'stop' | 'usage'>,
): JsonObject {
  const isCut = stop === 'length' || stop === 'context';
  const isFiltered = stop === 'refused' && !output.some(holdsRefusal);
  const reason = isCut ? 'max_output_tokens' : isFiltered ? 'content_filter' : undefined;
  return {
    ...head,
    status: reason ? 'incomplete' : 'completed',
    ...(reason && { incomplete_details: { reason } }),
    output,
    usage: writtenUsage(usage),
  };
}

function holdsRefusal({ content }: JsonObject): boolean {
  return Array.isArray(content) && content.some(({ type }) => type === 'refusal');
}

function messageItem(id: string, content: JsonObject): JsonObject {
  return { id, type: 'message', status: 'completed', role: 'assistant', content: [content] };
}

function contentOf(type: 'text' | 'refusal', text: string | JsonText): JsonObject {
  if (type === 'refusal') return { type: 'refusal', refusal: text };
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

function callItem(
  { id: call_id, name, arguments: given }: { id: string; name: string; arguments: string },
  id: string,
  request: NeutralRequest,
): JsonObject {
  const tool = toolNamed(request, name);
  const named = { name: tool?.group?.tool ?? name, ...(tool?.group && { namespace: tool.group.name }) };
  const common = { id, status: 'completed', call_id, ...named };
  if (tool?.freeForm) return { type: 'custom_tool_call', ...common, input: freeFormInput(given) };
  return { type: 'function_call', ...common, arguments: given };
}

function writtenUsage({
  input,
  output,
  cacheRead = 0,
  cacheWrite,
  reasoning = 0,
}: NeutralUsage): JsonObject | null {
  if (input === undefined && output === undefined) return null;
  return {
    input_tokens: input ?? 0,
    input_tokens_details: {
      cached_tokens: cacheRead,
      ...(cacheWrite !== undefined && { cache_write_tokens: cacheWrite }),
    },
    output_tokens: output ?? 0,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: (input ?? 0) + (output ?? 0),
  };
}

type Open =
  | { type: 'text' | 'refusal' | 'reasoning'; item: JsonObject }
  | { type: 'call'; item: JsonObject; id: string; name: string };

/**
 * The wire repeats each part at the end of the part, and all parts at the end of the answer. So they are
 * kept, up to a bound.
 */
export const writeStream: WireTranslation['writeStream'] = ({ request, at }, emit) => {
  let head: JsonObject = {};
  let sequence_number = 0;
  let open: Open | undefined;
  let kept = 0;
  /** The JSON of the open part's text so far, as its pieces were written. */
  const whole = new ByteStore();
  const output: JsonObject[] = [];
  const event = (type: string, data: JsonObject) =>
    emit({ event: type, data: { type, sequence_number: sequence_number++, ...data } });
  const place = () => ({ item_id: itemId(head, output.length), output_index: output.length });
  const inContent = (type: Open['type']) => ({
    ...place(),
    [type === 'reasoning' ? 'summary_index' : 'content_index']: 0,
  });

  const begin = (opened: Open) => {
    close();
    open = opened;
    event('response.output_item.added', { output_index: output.length, item: opened.item });
    if (opened.type === 'reasoning')
      event('response.reasoning_summary_part.added', {
        ...inContent('reasoning'),
        part: { type: 'summary_text', text: '' },
      });
    else if (opened.type !== 'call')
      event('response.content_part.added', { ...inContent(opened.type), part: contentOf(opened.type, '') });
  };
  const end = (item: JsonObject) => {
    event('response.output_item.done', { output_index: output.length, item });
    output.push(item);
    for (const part of partsOf(item)) kept += part.length;
    if (kept > modelAnswers.bytes.translated) throw tooLarge('the answer');
    open = undefined;
  };
  /** Adds a piece to the open part. Returns what stands for it in an event. */
  const add = (piece: string): string | JsonText => {
    const json = JsonText.of(piece);
    if (whole.size + json.bytes.length > modelAnswers.bytes.translated)
      throw tooLarge('a part of the answer');
    whole.add(json.bytes.subarray(whole.size === 0 ? 0 : 1, -1));
    return isShared(json) ? json : piece;
  };
  const takeWhole = () => {
    if (whole.size === 0) whole.add(quote);
    whole.add(quote);
    return new JsonText(whole.take());
  };
  const close = (signature?: string, redacted?: true) => {
    if (!open) return;
    const id = itemId(head, output.length);
    const json = takeWhole();
    const text = isShared(json) ? json : json.text;
    switch (open.type) {
      case 'call': {
        const item = callItem({ id: open.id, name: open.name, arguments: json.text }, id, request);
        if (item.type === 'function_call') {
          item.arguments = text;
          event('response.function_call_arguments.done', { ...place(), name: item.name, arguments: text });
        } else {
          event('response.custom_tool_call_input.delta', { ...place(), delta: item.input });
          event('response.custom_tool_call_input.done', { ...place(), input: item.input });
        }
        return end(item);
      }
      case 'reasoning':
        event('response.reasoning_summary_text.done', { ...inContent('reasoning'), text });
        event('response.reasoning_summary_part.done', {
          ...inContent('reasoning'),
          part: { type: 'summary_text', text },
        });
        return end({ id, ...reasoningItem({ text, signature, redacted }) });
      default: {
        const { type } = open;
        const [name, member] = type === 'refusal' ? ['refusal', 'refusal'] : ['output_text', 'text'];
        event(`response.${name}.done`, {
          ...inContent(type),
          [member]: text,
          ...(type === 'text' && { logprobs: [] }),
        });
        event('response.content_part.done', { ...inContent(type), part: contentOf(type, text) });
        return end(messageItem(id, contentOf(type, text)));
      }
    }
  };

  const take = (step: NeutralEvent) => {
    const nextId = () => itemId(head, output.length + (open ? 1 : 0));
    switch (step.type) {
      case 'start': {
        head = responseHead(step, request, at);
        const response = { ...head, status: 'in_progress', output: [], usage: null };
        event('response.created', { response });
        return event('response.in_progress', { response });
      }
      case 'text':
      case 'refusal':
      case 'reasoning': {
        const { type, text } = step;
        if (open?.type !== type) begin({ type, item: beginningOf(type, nextId()) });
        const delta = add(text);
        const name =
          type === 'text' ? 'output_text' : type === 'refusal' ? 'refusal' : 'reasoning_summary_text';
        const logprobs = type === 'text' && { logprobs: [] };
        return event(`response.${name}.delta`, { ...inContent(type), delta, ...logprobs });
      }
      case 'signature':
        if (open?.type !== 'reasoning')
          begin({ type: 'reasoning', item: beginningOf('reasoning', nextId()) });
        return close(step.signature, step.redacted);
      case 'call': {
        const item = { ...callItem({ ...step, arguments: '' }, nextId(), request), status: 'in_progress' };
        return begin({ type: 'call', item, id: step.id, name: step.name });
      }
      case 'arguments': {
        const delta = add(step.text);
        if (open?.item.type === 'function_call')
          event('response.function_call_arguments.delta', { ...place(), delta });
        return;
      }
      case 'callEnd':
        return close();
      case 'end': {
        close();
        const response = endOf(head, output, step);
        return event(`response.${response.status}`, { response });
      }
      case 'failure': {
        const error = { code: step.code ?? 'server_error', message: step.message };
        return event('response.failed', {
          response: { ...head, status: 'failed', error, output, usage: null },
        });
      }
    }
  };
  return { take, held: () => kept + whole.size };
};

const quote = Buffer.from('"');

/** Whether a text is so long that the events which contain it share its bytes. */
function isShared({ bytes }: JsonText): boolean {
  return bytes.length >= 1024;
}

function tooLarge(what: string): UnreadableAnswer {
  return new UnreadableAnswer(
    `${what} is larger than ${modelAnswers.bytes.translated} bytes, and its client's wire needs it whole`,
  );
}

/** An item at its beginning. */
function beginningOf(type: 'text' | 'refusal' | 'reasoning', id: string): JsonObject {
  if (type === 'reasoning') return { id, type: 'reasoning', summary: [] };
  return { id, type: 'message', status: 'in_progress', role: 'assistant', content: [] };
}
