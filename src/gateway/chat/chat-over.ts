import { chatAnswers } from '../../bounds/model.ts';
import { ByteStore } from '../../byte-store.ts';
import { OffsiteError } from '../../offsite-error.ts';
import type { Wire } from '../../suite/model-config.ts';
import type { Upstream } from '../upstream.ts';
import { type JsonObject, parsed } from '../wires/lenient.ts';
import type { WireDescriptor } from '../wires/wire-descriptor.ts';
import { wireTable } from '../wires/wire-table.ts';
import type { ChatAnswer, ChatRequest } from './chat.ts';
import { refusedBy, unreachable, unreadable } from './model-errors.ts';

/**
 * Requests one answer from a model in its own wire. Leaves out what the wire does not support, such as a
 * seed.
 *
 * Throws the signal's reason if it aborts, and the `OffsiteError`s of `send`. Otherwise throws
 * `MODEL_UNREACHABLE`, `MODEL_REFUSED`, `MODEL_CONTEXT_FULL` or `MODEL_ANSWER_UNREADABLE`, with the
 * upstream's own message.
 */
export async function chatOver(
  send: Upstream['send'],
  to: { wire: Wire; model: string },
  request: ChatRequest,
  signal: AbortSignal,
): Promise<ChatAnswer> {
  const wire = wireTable[to.wire];
  const body = wire.requests.write(to.model, request);
  const answer = await exchange(send, to, wire, { body, checksForm: request.schema !== undefined }, signal);
  if (answer.status < 200 || answer.status > 299) throw refusedBy(to, answer.status, answer.body);
  const document = parsed(answer.body.toString('utf8'));
  const reply = wire.answers.readReply(document, request);
  const { usage, answeredBy, failure } = wire.answers.readFacts(document);
  if (failure !== undefined) throw refusedBy(to, answer.status, answer.body);
  if (reply === undefined) throw unreadable(to, answer.body);
  return { ...reply, usage, model: answeredBy };
}

async function exchange(
  send: Upstream['send'],
  to: { wire: Wire; model: string },
  { endpoints: [{ path }], headers }: WireDescriptor,
  { body: document, checksForm }: { body: JsonObject; checksForm: boolean },
  signal: AbortSignal,
): Promise<{ status: number; body: Buffer }> {
  const body = Buffer.from(JSON.stringify(document));
  const common = { 'content-type': 'application/json', accept: 'application/json' };
  try {
    signal.throwIfAborted();
    const answer = await send(
      { wire: to.wire, method: 'POST', path, headers: { ...common, ...headers }, body, checksForm },
      signal,
    );
    return { status: answer.status, body: await whole(answer.body, to) };
  } catch (thrown) {
    throw signal.aborted ? signal.reason : unreachable(to, thrown);
  }
}

async function whole(body: AsyncIterable<Uint8Array>, { model }: { model: string }): Promise<Buffer> {
  const store = new ByteStore();
  for await (const chunk of body) {
    if (store.size + chunk.length > chatAnswers.bytes.answer) {
      throw new OffsiteError(`the model ${model} answered with more than ${chatAnswers.bytes.answer} bytes`, {
        code: 'MODEL_ANSWER_UNREADABLE',
        kind: 'infrastructure',
      });
    }
    store.add(chunk);
  }
  return store.take();
}
