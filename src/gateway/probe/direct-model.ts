import { infrastructureError, inputError } from '../../base/offsite-error.ts';
import { chatAnswers } from '../../bounds/model.ts';
import type { ModelConfig, Wire } from '../../suite/model-config.ts';
import type { ChatAnswer, ChatRequest } from '../chat/chat.ts';
import { chatOver } from '../chat/chat-over.ts';
import type { GatewayOptions } from '../gateway-parts.ts';
import { ownName, unknownModel } from '../open-gateway.ts';
import { type ServedModel, serveModel } from '../served-model.ts';
import { answerStream } from '../translation/answer-stream.ts';
import { Losses } from '../translation/losses.ts';
import { callIds } from '../translation/stream-steps.ts';
import { wireTable } from '../wires/wire-table.ts';

/** What questions to a model used. A number is too low if an answer did not report it. */
export interface Used {
  requests: number;
  inputTokens: number;
  outputTokens: number;
  /** Answers that did not report their tokens. */
  unreported: number;
}

/**
 * A model that is asked without the gateway: no retries, no permits, so that what is measured is the model.
 */
export interface DirectModel extends ServedModel {
  used: Used;
}

/** Throws an input error if the model is not configured or cannot be used. */
export function openDirectModel(asked: string, options: GatewayOptions): DirectModel {
  const name = ownName(asked, options.models);
  const config = Object.hasOwn(options.models, name) ? options.models[name] : undefined;
  if (!config) throw unknownModel(name, Object.keys(options.models));
  refuseReplayed(name, config);
  const served = serveModel(name, config, { random: Math.random, ...options });
  return { ...served, used: { requests: 0, inputTokens: 0, outputTokens: 0, unreported: 0 } };
}

/** Throws an input error for a model that only repeats recorded answers. */
export function refuseReplayed(name: string, config: ModelConfig): void {
  if (!('replay' in config)) return;
  throw inputError(
    'MODEL_REPLAYED',
    `the model ${name} repeats recorded answers, so there is nothing to check or measure`,
    { hint: 'Check the model whose answers were recorded.' },
  );
}

/** Asks for one answer over a wire. Throws as {@link chatOver} does. */
export async function askDirectly(
  { upstream, upstreamName, name, used }: DirectModel,
  wire: Wire,
  request: ChatRequest,
  signal: AbortSignal,
  stream?: Parameters<typeof chatOver>[4],
): Promise<ChatAnswer> {
  const over = new AbortController();
  try {
    const asking = AbortSignal.any([signal, over.signal]);
    const answer = await chatOver(
      upstream.send,
      { wire, model: upstreamName, name },
      request,
      asking,
      stream,
    );
    const { inputTokens, outputTokens } = answer.usage;
    used.requests += 1;
    used.inputTokens += inputTokens ?? 0;
    used.outputTokens += outputTokens ?? 0;
    if (inputTokens === undefined || outputTokens === undefined) used.unreported += 1;
    return answer;
  } finally {
    over.abort();
  }
}

/** How an answer streamed. Times are milliseconds since the request was sent. */
export interface StreamedAnswer {
  /** The first piece of text, of reasoning or of a call. Undefined if there was none. */
  firstTokenMs: number | undefined;
  lastTokenMs: number | undefined;
  totalMs: number;
  /** How many times pieces arrived. Pieces that arrived together count once. */
  arrivals: number;
  inputTokens: number | undefined;
  outputTokens: number;
  /** Set if the answer did not report its tokens: then a piece counts as one. */
  estimated?: true;
}

/** Pieces within these milliseconds arrived together. */
const togetherMs = 1;

/**
 * Asks for a streamed answer, without retries. Throws as {@link askDirectly} and {@link askWithin} do.
 *
 * @param limits.within milliseconds for the whole answer
 */
export async function streamedAnswer(
  model: DirectModel,
  wire: Wire,
  { prompt, maxTokens }: { prompt: string; maxTokens: number },
  { within, signal }: { within: number; signal: AbortSignal },
): Promise<StreamedAnswer> {
  const startedAt = performance.now();
  const times: number[] = [];
  const stream = answerStream(wireTable[wire].translation, {
    ids: callIds(),
    losses: new Losses('lenient', wire),
    longest: chatAnswers.bytes.answer,
    emit({ type }) {
      if (type === 'text' || type === 'reasoning' || type === 'arguments')
        times.push(performance.now() - startedAt);
    },
  });
  const decoder = new TextDecoder();
  const onPiece = (piece: Uint8Array) => stream.feed(decoder.decode(piece, { stream: true }));
  const asked = { messages: [{ from: 'user' as const, text: prompt }], maxTokens };
  const { usage } = await askWithin(
    (asking) => askDirectly(model, wire, asked, asking, { streamed: true, onPiece }),
    { name: model.name, within, signal },
  );
  return {
    firstTokenMs: times[0],
    lastTokenMs: times.at(-1),
    arrivals: times.filter((at, index) => index === 0 || at - Number(times[index - 1]) > togetherMs).length,
    totalMs: performance.now() - startedAt,
    inputTokens: usage.inputTokens,
    outputTokens: usage.outputTokens ?? times.length,
    ...(usage.outputTokens === undefined && { estimated: true as const }),
  };
}

/** Throws `MODEL_TOO_SLOW` if an answer does not come in time. */
export async function askWithin<Answer>(
  ask: (asking: AbortSignal) => Promise<Answer>,
  { name, within, signal }: { name: string; within: number; signal: AbortSignal },
): Promise<Answer> {
  const deadline = AbortSignal.timeout(within);
  try {
    return await ask(AbortSignal.any([signal, deadline]));
  } catch (error) {
    if (error !== deadline.reason) throw error;
    throw infrastructureError(
      'MODEL_TOO_SLOW',
      `the model ${name} did not answer within ${within / 1000} s`,
      { hint: 'A server may be loading it: try again, or give it longer with --timeout.' },
    );
  }
}
