import type { Clock } from '../../base/clock.ts';
import { untilAborted } from '../../base/deadline.ts';
import { infrastructureError, messageOf } from '../../base/offsite-error.ts';
import { parseForeignJson } from '../../base/parse-json.ts';
import { modelRequests } from '../../bounds/sandbox.ts';
import { ScriptFile, type ScriptTurn, type Trouble } from '../../suite/script-file.ts';
import { readYamlFile } from '../../suite/yaml-file.ts';
import { singleChunk, type Upstream, type UpstreamAnswer, type UpstreamRequest } from '../answer.ts';
import { Losses } from '../translation/losses.ts';
import type { NeutralAnswer } from '../translation/neutral-answer.ts';
import { isObject, type JsonObject, textOfEvent, type WireEvent } from '../wires/lenient.ts';
import type { WireDescriptor } from '../wires/wire-descriptor.ts';
import { wireTable } from '../wires/wire-table.ts';
import { type Conversation, readConversation, scriptedDocument, scriptedEvents } from './conversation.ts';
import { answerOf, chooseTurn, conversationKey, estimateTokens } from './turns.ts';

/**
 * A model that answers from a file of turns. Its only state between requests is how often each state of a
 * conversation has met a `trouble` with `times`. Each session has its own upstream, which keeps trials apart.
 *
 * Throws {@link BadFile} with every problem and its location, or an `input` error if the file cannot be read.
 */
export function scriptedUpstream(file: string, clock: Clock): Upstream {
  const script = readYamlFile(file, ScriptFile).value;
  const timesMet = new Map<string, number>();
  return { send: (request, signal) => answer(script, timesMet, request, clock, signal) };
}

async function answer(
  script: ScriptFile,
  timesMet: Map<string, number>,
  request: UpstreamRequest,
  clock: Clock,
  signal: AbortSignal,
): Promise<UpstreamAnswer> {
  signal.throwIfAborted();
  const wire = wireTable[request.wire];
  const refuse = (status: number, message: string, headers?: Record<string, string>) =>
    json(status, wire.errorBody(status, 'scripted_refusal', message), headers);
  const path = request.path.split('?', 1)[0] ?? '';
  const inPath = wire.targetOf?.(path);
  const endpoint = wire.endpoints.find((one) =>
    inPath ? (one.writeCount !== undefined) === (inPath.purpose === 'count') : one.path === path,
  );
  if (request.method !== 'POST' || !endpoint) {
    return refuse(404, `a scripted model has no ${request.method} ${path}`);
  }
  const body = parse(request.body);
  if (typeof body === 'string') return refuse(400, body);
  if (endpoint.writeCount) return json(200, endpoint.writeCount(estimateTokens(request.body.length)));

  const conversation = readConversation(request.wire, body, request.body.length, inPath);
  const inForm = script.fillForms ? formAnswer(wire, body) : undefined;
  const turn = inForm ? undefined : chooseTurn(script, conversation);
  if (turn?.delay !== undefined) await clock.sleep(turn.delay, signal);
  const trouble = turn && troubleNow(script, turn, conversation, timesMet);
  if (trouble && 'error' in trouble) {
    const { status, message, retryAfter } = trouble.error;
    const headers: Record<string, string> =
      retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) };
    return refuse(status, message, headers);
  }
  if (trouble && 'hang' in trouble) return untilAborted(signal);
  const answered = answerOf(inForm ?? turn ?? { text: script.otherwise }, conversation);
  if ('impossible' in answered) return refuse(400, answered.impossible);
  const isLost = inForm === undefined && turn === undefined && begins(wire, body, conversation);
  return {
    status: 200,
    ...(isLost && { unscripted: true as const }),
    headers: {
      'content-type': conversation.streamed ? 'text/event-stream; charset=utf-8' : 'application/json',
    },
    body: bodyOf(answered, conversation, turn, trouble, clock, signal),
  };
}

/** Whether an agent or a judge asks for the first time. Harnesses ask for titles without tools. */
function begins(wire: WireDescriptor, body: JsonObject, { messages, tools }: Conversation): boolean {
  if (messages.some(({ from }) => from === 'model')) return false;
  return tools.length > 0 || readAsked(wire, body)?.format !== undefined;
}

function bodyOf(
  answered: NeutralAnswer,
  conversation: Conversation,
  turn: ScriptTurn | undefined,
  trouble: Trouble | undefined,
  clock: Clock,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  const { characters = 24, pause } = turn?.stream ?? {};
  const pace = (chunks: Iterable<Uint8Array>) => paced(chunks, pause, clock, signal);
  if (trouble && 'garbage' in trouble) return pace([garbage]);
  const events = () => scriptedEvents(answered, conversation, { characters, at: clock.now() });
  const whole = () => scriptedDocument(answered, conversation, clock.now());
  if (trouble && 'neverEnding' in trouble)
    return pace(conversation.streamed ? endless(events()) : repeated(Buffer.from(' '.repeat(64))));
  const chunks = pace(conversation.streamed ? events().map(bytesOf) : [whole()]);
  return trouble && 'cut' in trouble ? cutShort(chunks, trouble.cut) : chunks;
}

/** The turn's `trouble`, while it still applies to this state of the conversation. */
function troubleNow(
  script: ScriptFile,
  turn: ScriptTurn,
  conversation: Conversation,
  timesMet: Map<string, number>,
): Trouble | undefined {
  const { trouble } = turn;
  if (trouble?.times === undefined) return trouble;
  const key = `${script.turns.indexOf(turn)} ${conversationKey(conversation)}`;
  const before = timesMet.get(key) ?? 0;
  if (before >= trouble.times) return undefined;
  timesMet.set(key, before + 1);
  return trouble;
}

function* repeated(chunk: Uint8Array): Iterable<Uint8Array> {
  while (true) yield chunk;
}

/** The request's document, or a message about what is wrong with it. */
function parse(body: Buffer): JsonObject | string {
  try {
    const document: unknown = parseForeignJson(body.toString('utf8'));
    return isObject(document) ? document : 'the request is not a JSON object';
  } catch (error) {
    return `the request is not JSON: ${messageOf(error)}`;
  }
}

function json(status: number, document: object, headers: Record<string, string> = {}): UpstreamAnswer {
  const bytes = Buffer.from(JSON.stringify(document));
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: singleChunk(bytes) };
}

type FormAnswer = Pick<ScriptTurn, 'text' | 'calls'>;

/**
 * The answer to a request that demands JSON of a schema, or the call of a certain tool: a document that the
 * schema allows. Undefined if it demands neither, or cannot be read.
 */
function formAnswer(wire: WireDescriptor, body: JsonObject): FormAnswer | undefined {
  const asked = readAsked(wire, body);
  if (!asked) return undefined;
  const { format, toolChoice, tools } = asked;
  if (format) return { text: JSON.stringify(sampleOf(format.schema ?? {})) };
  const wanted = typeof toolChoice === 'object' ? toolChoice.tool : undefined;
  const tool = tools.find(({ name }) => name === wanted);
  if (!tool) return undefined;
  return { calls: [{ tool: tool.name, arguments: sampleOf(tool.parameters) as JsonObject }] };
}

function readAsked(wire: WireDescriptor, body: JsonObject) {
  try {
    return wire.translation.readRequest(body, new Losses('lenient', 'a scripted model'));
  } catch {
    return undefined;
  }
}

/**
 * A document that a JSON Schema allows, as the model of a dry run returns it: the largest allowed numbers,
 * the first of several choices, and all required members. Ignores keywords that it does not know.
 */
export function sampleOf(schema: unknown, level = 0): unknown {
  if (!isObject(schema) || level > modelRequests.count.schemaLevels) return null;
  if ('const' in schema) return schema.const;
  if ('default' in schema) return schema.default;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  const [choice] = [schema.anyOf, schema.oneOf].filter(Array.isArray).flat();
  if (choice !== undefined) return sampleOf(choice, level + 1);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  switch (type) {
    case 'object':
      return objectOf(schema, level);
    case 'array': {
      const least =
        typeof schema.minItems === 'number' ? Math.min(schema.minItems, modelRequests.count.schemaLevels) : 0;
      return Array.from({ length: least }, () => sampleOf(schema.items, level + 1));
    }
    case 'number':
    case 'integer': {
      const { maximum, minimum } = schema;
      return typeof maximum === 'number' ? maximum : typeof minimum === 'number' ? minimum : 1;
    }
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return isObject(schema.properties) ? objectOf(schema, level) : 'This is a dry run.';
  }
}

function objectOf(schema: Record<string, unknown>, level: number): Record<string, unknown> {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  const names = Object.keys(properties).filter((name) => required.includes(name));
  return Object.fromEntries(names.map((name) => [name, sampleOf(properties[name], level + 1)]));
}

type Cut = Extract<Trouble, { cut: unknown }>['cut'];
type Bytes = AsyncIterable<Uint8Array>;

export function bytesOf(event: WireEvent): Buffer {
  return Buffer.from(textOfEvent(event));
}

/**
 * Yields chunk by chunk, and waits `pause` milliseconds after each. Throws the signal's reason when it
 * aborts.
 */
async function* paced(
  chunks: Iterable<Uint8Array>,
  pause: number | undefined,
  clock: Clock,
  signal: AbortSignal,
): Bytes {
  for (const chunk of chunks) {
    signal.throwIfAborted();
    yield chunk;
    if (pause !== undefined) await clock.sleep(pause, signal);
  }
}

/** Cuts the stream after a number of bytes or chunks, whichever comes first. */
async function* cutShort(chunks: Bytes, { afterBytes, afterEvents, cleanly }: Cut): Bytes {
  let bytesLeft = afterBytes ?? Number.POSITIVE_INFINITY;
  let eventsLeft = afterEvents ?? Number.POSITIVE_INFINITY;
  for await (const chunk of chunks) {
    if (eventsLeft === 0 || bytesLeft === 0) break;
    yield chunk.length > bytesLeft ? chunk.subarray(0, bytesLeft) : chunk;
    bytesLeft = Math.max(0, bytesLeft - chunk.length);
    eventsLeft -= 1;
  }
  if (cleanly) return;
  throw infrastructureError('SCRIPTED_CUT', 'the script cuts the connection here');
}

/** Endless text: the answer's beginning, then the same event repeatedly. */
function* endless(events: Iterable<WireEvent>): Iterable<Uint8Array> {
  let delta: Buffer | undefined;
  for (const event of events) {
    const bytes = bytesOf(event);
    yield bytes;
    if (!event.isText) continue;
    delta = bytes;
    break;
  }
  while (true) yield delta ?? Buffer.from(': still here\n\n');
}

/** Neither JSON, nor events, nor UTF-8. */
const garbage = Buffer.concat([
  Buffer.from('data: {"choices": [{"delta": \n\n<html>Bad gateway</html>\n'),
  Buffer.from([0xff, 0xfe, 0x00, 0xc3, 0x28]),
  Buffer.from('\nevent: \ndata: ]}{\n\n'),
]);
