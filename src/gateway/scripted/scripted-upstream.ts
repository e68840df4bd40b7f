import type { Clock } from '../../clock.ts';
import { messageOf } from '../../offsite-error.ts';
import { parseForeignJson } from '../../parse-json.ts';
import type { Wire } from '../../suite/model-config.ts';
import { ScriptFile, type ScriptTurn, type Trouble } from '../../suite/script-file.ts';
import { readYamlFile } from '../../suite/yaml-file.ts';
import type { Upstream, UpstreamAnswer, UpstreamRequest } from '../upstream.ts';
import { dialects } from '../wires/dialects.ts';
import { answerOf, conversationKey, reckonTokens, type ScriptedAnswer } from './answer.ts';
import { chooseTurn } from './choose-turn.ts';
import { type Conversation, isJson, type Json } from './conversation.ts';
import { bytesOf, cutShort, endless, garbage, paced } from './pass-events.ts';
import { readConversation } from './read-conversation.ts';
import type { WireForm } from './wire-form.ts';
import { chatForm } from './write-chat.ts';
import { messagesForm } from './write-messages.ts';
import { responsesForm } from './write-responses.ts';

const forms: Record<Wire, WireForm> = {
  'openai-chat': chatForm,
  'openai-responses': responsesForm,
  'anthropic-messages': messagesForm,
};
const answerPaths: Record<Wire, string> = {
  'openai-chat': '/chat/completions',
  'openai-responses': '/responses',
  'anthropic-messages': '/messages',
};
const countPaths = ['/messages/count_tokens', '/responses/input_tokens'];

/**
 * A model that answers from a file of turns. It remembers one thing between requests: how often a trouble with `times` has
 * befallen each state of a conversation. One upstream a session keeps trials apart.
 *
 * Throws {@link BadFile} with every problem at its place, or an `input` error where the file cannot be read.
 */
export function scriptedUpstream(file: string, clock: Clock): Upstream {
  const script = readYamlFile(file, ScriptFile).value;
  const befallen = new Map<string, number>();
  return { send: (request, signal) => answer(script, befallen, request, clock, signal) };
}

async function answer(
  script: ScriptFile,
  befallen: Map<string, number>,
  request: UpstreamRequest,
  clock: Clock,
  signal: AbortSignal,
): Promise<UpstreamAnswer> {
  signal.throwIfAborted();
  const refuse = (status: number, message: string, headers?: Record<string, string>) =>
    json(status, dialects[request.wire].errorBody(status, 'scripted_refusal', message), headers);
  const path = request.path.split('?', 1)[0] ?? '';
  const counting = countPaths.includes(path);
  if (request.method !== 'POST' || !(counting || path === answerPaths[request.wire])) {
    return refuse(404, `a scripted model has no ${request.method} ${path}`);
  }
  const body = parse(request.body);
  if (typeof body === 'string') return refuse(400, body);
  if (counting) return json(200, tokenCount(path, reckonTokens(request.body.length)));

  const conversation = readConversation(request.wire, body, request.body.length);
  const turn = chooseTurn(script, conversation);
  if (turn?.delay !== undefined) await clock.sleep(turn.delay, signal);
  const trouble = turn && troubleNow(script, turn, conversation, befallen);
  if (trouble && 'error' in trouble) {
    const { status, message, retryAfter } = trouble.error;
    const headers: Record<string, string> =
      retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) };
    return refuse(status, message, headers);
  }
  if (trouble && 'hang' in trouble) return untilAborted(signal);
  const answered = answerOf(turn ?? { text: script.otherwise }, conversation);
  if ('impossible' in answered) return refuse(400, answered.impossible);
  return {
    status: 200,
    headers: {
      'content-type': conversation.streamed ? 'text/event-stream; charset=utf-8' : 'application/json',
    },
    body: bodyOf(answered, conversation, turn, trouble, clock, signal),
  };
}

function bodyOf(
  answered: ScriptedAnswer,
  conversation: Conversation,
  turn: ScriptTurn | undefined,
  trouble: Trouble | undefined,
  clock: Clock,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  const form = forms[conversation.wire];
  const { characters = 24, pause } = turn?.stream ?? {};
  const pace = (chunks: Iterable<Uint8Array>) => paced(chunks, pause, clock, signal);
  if (trouble && 'garbage' in trouble) return pace([garbage]);
  const events = () => form.events(answered, conversation, characters, clock.now());
  const whole = () => Buffer.from(JSON.stringify(form.document(answered, clock.now())));
  if (trouble && 'neverEnding' in trouble)
    return pace(conversation.streamed ? endless(events()) : repeated(Buffer.from(' '.repeat(64))));
  const chunks = pace(conversation.streamed ? events().map(bytesOf) : [whole()]);
  return trouble && 'cut' in trouble ? cutShort(chunks, trouble.cut) : chunks;
}

/** The turn's trouble, while it lasts for this state of the conversation. */
function troubleNow(
  script: ScriptFile,
  turn: ScriptTurn,
  conversation: Conversation,
  befallen: Map<string, number>,
): Trouble | undefined {
  const { trouble } = turn;
  if (trouble?.times === undefined) return trouble;
  const key = `${script.turns.indexOf(turn)} ${conversationKey(conversation)}`;
  const before = befallen.get(key) ?? 0;
  if (before >= trouble.times) return undefined;
  befallen.set(key, before + 1);
  return trouble;
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    if (signal.aborted) reject(signal.reason);
  });
}

function* repeated(chunk: Uint8Array): Iterable<Uint8Array> {
  while (true) yield chunk;
}

/** The request's document, or what is wrong with it. */
function parse(body: Buffer): Json | string {
  try {
    const document: unknown = parseForeignJson(body.toString('utf8'));
    return isJson(document) ? document : 'the request is no JSON object';
  } catch (error) {
    return `the request is no JSON: ${messageOf(error)}`;
  }
}

function tokenCount(path: string, input_tokens: number): Json {
  return path.startsWith('/responses') ? { object: 'response.input_tokens', input_tokens } : { input_tokens };
}

function json(status: number, document: object, headers: Record<string, string> = {}): UpstreamAnswer {
  const bytes = Buffer.from(JSON.stringify(document));
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: one(bytes) };
}

async function* one(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}
