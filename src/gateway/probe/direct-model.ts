import { OffsiteError } from '../../base/offsite-error.ts';
import type { Usage } from '../../contract/report.ts';
import type { ModelConfig, Wire } from '../../suite/model-config.ts';
import type { ChatAnswer, ChatRequest } from '../chat/chat.ts';
import { chatOver } from '../chat/chat-over.ts';
import type { GatewayOptions } from '../gateway-parts.ts';
import { ownName, unknownModel } from '../open-gateway.ts';
import { type ServedModel, serveModel } from '../served-model.ts';
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
  throw new OffsiteError(
    `the model ${name} repeats recorded answers, so there is nothing to check or measure`,
    {
      code: 'MODEL_REPLAYED',
      kind: 'input',
      hint: 'Check the model whose answers were recorded.',
    },
  );
}

export function noteUsage(used: Used, { inputTokens, outputTokens }: Usage): void {
  used.requests += 1;
  used.inputTokens += inputTokens ?? 0;
  used.outputTokens += outputTokens ?? 0;
  if (inputTokens === undefined || outputTokens === undefined) used.unreported += 1;
}

/** Asks for one answer over a wire. Throws as {@link chatOver} does. */
export async function askDirectly(
  model: DirectModel,
  wire: Wire,
  request: ChatRequest,
  signal: AbortSignal,
): Promise<ChatAnswer> {
  const path = wireTable[wire].translation.path(model.upstreamName, false);
  const over = new AbortController();
  try {
    const answer = await chatOver(
      (asked, asking) => model.upstream.send({ ...asked, path }, asking),
      { wire, model: model.upstreamName },
      request,
      AbortSignal.any([signal, over.signal]),
    );
    noteUsage(model.used, answer.usage);
    return answer;
  } finally {
    over.abort();
  }
}
