import { ByteStore } from '../../base/byte-store.ts';
import { infrastructureError } from '../../base/offsite-error.ts';
import { chatAnswers } from '../../bounds/model.ts';
import type { Wire } from '../../suite/model-config.ts';
import type { Upstream } from '../answer.ts';
import { usageWithTotal } from '../metering.ts';
import { isEvents, wholeAnswer } from '../translation/answer-stream.ts';
import { Losses } from '../translation/losses.ts';
import {
  ModelFailed,
  type NeutralAnswer,
  type NeutralStop,
  UnreadableAnswer,
} from '../translation/neutral-answer.ts';
import type { ModelPart, NeutralMessage } from '../translation/neutral-request.ts';
import { callIds } from '../translation/stream-steps.ts';
import { fields, type JsonObject } from '../wires/lenient.ts';
import { argumentsOf } from '../wires/openai.ts';
import type { WireDescriptor } from '../wires/wire-descriptor.ts';
import { wireTable } from '../wires/wire-table.ts';
import type { ChatAnswer, ChatMessage, ChatRequest, ToolCall } from './chat.ts';
import { refusedBy, type UpstreamHead, unreachable, unreadable } from './model-errors.ts';

/**
 * Requests one answer from a model in its own wire. Leaves out what the wire does not support, such as a
 * seed.
 *
 * Throws the signal's reason if it aborts, and the `OffsiteError`s of `send`. Otherwise throws
 * `MODEL_UNREACHABLE`, `MODEL_REFUSED`, `MODEL_CONTEXT_FULL` or `MODEL_ANSWER_UNREADABLE`, with the
 * upstream's own message.
 */
export async function chatOver(...asked: Parameters<typeof answerOver>): Promise<ChatAnswer> {
  const [, , { schema }] = asked;
  return chatAnswerOf(await answerOver(...asked), schema);
}

interface Streamed {
  streamed: true;
  /** Default: the request alone. */
  body?: JsonObject;
  onPiece?(piece: Uint8Array): void;
}

/** The same in the neutral form. Throws as {@link chatOver} does. `name` is what errors call the model. */
export async function answerOver(
  send: Upstream['send'],
  { name, ...to }: { wire: Wire; model: string; name?: string },
  request: ChatRequest,
  signal: AbortSignal,
  stream?: Streamed,
): Promise<NeutralAnswer> {
  const wire = wireTable[to.wire];
  const named = { ...to, model: name ?? to.model };
  const streamed = stream !== undefined;
  const body = stream?.body ?? writeChat(wire, to.model, request, { streamed });
  const sent = {
    wire: to.wire,
    method: 'POST',
    path: wire.translation.path(to.model, streamed),
    headers: { 'content-type': json, accept: streamed ? 'text/event-stream' : json, ...wire.headers },
    body: Buffer.from(JSON.stringify(body)),
    checksForm: request.schema !== undefined,
  };
  let answer: UpstreamHead & { body: Buffer };
  try {
    signal.throwIfAborted();
    const { body: pieces, ...head } = await send(sent, signal);
    answer = { ...head, body: await whole(pieces, to, stream?.onPiece) };
  } catch (thrown) {
    throw signal.aborted ? signal.reason : unreachable(named, thrown);
  }
  if (answer.status < 200 || answer.status > 299) throw refusedBy(named, answer, answer.body);
  const text = answer.body.toString('utf8');
  try {
    const read = wholeAnswer(wire, text, callIds(idsOf(request.messages)), new Losses('lenient', to.model));
    if (!streamed || isEvents(text)) return read;
    throw new UnreadableAnswer(`it is no stream, but ${answer.headers['content-type'] ?? 'no type'}`);
  } catch (error) {
    if (error instanceof ModelFailed && !streamed) throw refusedBy(named, answer, answer.body);
    if (error instanceof ModelFailed || error instanceof UnreadableAnswer) throw unreadable(named, error);
    throw error;
  }
}

const json = 'application/json';

/** The ids of the calls of a conversation. */
function idsOf(messages: readonly ChatMessage[]): string[] {
  return messages.flatMap((message) => (message.from === 'model' ? message.calls.map(({ id }) => id) : []));
}

/** @param schema the form that the answer was asked to have */
export function chatAnswerOf(
  { parts, stop, usage, model }: NeutralAnswer,
  schema?: ChatRequest['schema'],
): ChatAnswer {
  const textOf = (type: 'text' | 'refusal') =>
    parts.flatMap((part) => (part.type === type ? [part.text] : [])).join('');
  const all = parts.flatMap((part) => (part.type === 'call' ? [part] : []));
  // Some wires have the schema as a tool that the model must call.
  const answer = all.find(({ name }) => name === schema?.name);
  const calls = all
    .filter((call) => call !== answer)
    .map(({ id, name, arguments: given }) => ({ id, name, arguments: argumentsOf(given) }));
  return {
    text: answer?.arguments ?? (textOf('text') || textOf('refusal')),
    calls,
    stopped: stoppedBy(stop, calls),
    usage: usageWithTotal(usage),
    model,
  };
}

/** Why an answer stopped. An answer that was cut may have incomplete calls. */
function stoppedBy(stop: NeutralStop, calls: readonly ToolCall[]): ChatAnswer['stopped'] {
  if (stop === 'refused') return 'refused';
  if (stop === 'length' || stop === 'context') return 'length';
  return calls.length > 0 ? 'tools' : 'done';
}

async function whole(
  body: AsyncIterable<Uint8Array>,
  { model }: { model: string },
  onPiece?: (piece: Uint8Array) => void,
): Promise<Buffer> {
  const store = new ByteStore();
  for await (const chunk of body) {
    if (store.size + chunk.length > chatAnswers.bytes.answer) {
      throw infrastructureError(
        'MODEL_ANSWER_UNREADABLE',
        `the model ${model} answered with more than ${chatAnswers.bytes.answer} bytes`,
      );
    }
    store.add(chunk);
    onPiece?.(chunk);
  }
  return store.take();
}

/**
 * Writes a request of this process, as a translated one. Leaves out what the wire does not support.
 *
 * @param options.said what the model said with the first call of that id, if it was more than text and calls
 */
export function writeChat(
  { translation, requests }: WireDescriptor,
  model: string,
  { system, messages, tools = [], schema, temperature, seed, maxTokens }: ChatRequest,
  { streamed = false, said }: { streamed?: boolean; said?: ReadonlyMap<string, ModelPart[]> } = {},
): JsonObject {
  const form = requests.formIsTool && schema;
  const answerTool = form && { name: form.name, description: 'Gives your answer.', parameters: form.schema };
  // If the request has tools, the model may use those first.
  const toolChoice = form && (tools.length > 0 ? ('required' as const) : { tool: form.name });
  return translation.writeRequest(
    {
      model,
      streamed,
      usageAsked: true,
      stop: [],
      messages: [
        ...(system === undefined ? [] : [{ from: 'system' as const, text: system }]),
        ...messages.map((message) => messageOf(message, said)),
      ],
      tools: [...tools, ...(answerTool ? [answerTool] : [])].map((tool) => ({ ...tool })),
      ...fields({ toolChoice, temperature, seed, maxTokens, format: form ? undefined : schema }),
    },
    new Losses('lenient', model),
    { model, maxOutputTokens: undefined },
  );
}

function messageOf(message: ChatMessage, said: ReadonlyMap<string, ModelPart[]> | undefined): NeutralMessage {
  const text = { type: 'text' as const, text: message.text };
  switch (message.from) {
    case 'user':
      return { from: 'user', parts: [text] };
    case 'tool':
      return { from: 'tool', callId: message.callId, parts: [text], failed: message.failed };
    case 'model': {
      const parts = said?.get(message.calls[0]?.id ?? '');
      if (parts) return { from: 'model', parts };
      const calls = message.calls.map(
        // Servers whose templates parse the history refuse invalid JSON, so malformed arguments are wrapped.
        ({ arguments: given, ...call }): ModelPart => ({
          type: 'call',
          ...call,
          arguments: JSON.stringify(given),
        }),
      );
      return { from: 'model', parts: [...(message.text === '' ? [] : [text]), ...calls] };
    }
  }
}
