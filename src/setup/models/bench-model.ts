import type { Context } from '../../api/context.ts';
import { costOf } from '../../gateway/exchange.ts';
import {
  type BenchLevel,
  type BenchLoad,
  benchLevel,
  type Recommendation,
  recommendParallel,
} from '../../gateway/probe/bench-level.ts';
import { openDirectModel, streamedAnswer, type Used } from '../../gateway/probe/direct-model.ts';
import type { AutoLimit, Wire } from '../../suite/model-config.ts';
import { type Printable, text } from '../../text/printable.ts';
import { count, duration } from '../../text/quantities.ts';

export interface BenchOptions {
  parallel: readonly number[];
  promptTokens: number;
  outputTokens: number;
  /** How many requests at each level. Default: {@link requestsEach} for each one in flight. */
  requests?: number | undefined;
  timeout: number;
}

export interface Bench {
  model: string;
  wire: Wire;
  load: Pick<BenchLoad, 'promptTokens' | 'outputTokens'>;
  /** The completed levels. */
  levels: BenchLevel[];
  recommendation: Recommendation;
  configured: number | AutoLimit | undefined;
  used: Used;
  /** Why it ended before all levels were measured. */
  interrupted: unknown;
}

/** Requests of a level for each one in flight, so that a level lasts for several answers. */
const requestsEach = 3;

/**
 * Measures a model at each level of parallelism. An aborted signal ends it with the levels so far. Throws the
 * failure of the first request, which loads the model.
 */
export async function benchModel(
  context: Context,
  asked: string,
  options: BenchOptions,
  { note, signal }: { note(message: Printable): void; signal: AbortSignal },
): Promise<Bench> {
  await using model = openDirectModel(asked, await context.models.gatewayOptions(context.config.models));
  const [wire] = model.wires;
  const within = options.timeout * 1000;
  const { promptTokens, outputTokens } = options;
  const parallels = [...new Set(options.parallel)].toSorted((one, other) => one - other);
  const loads = parallels.map((parallel) => {
    const requests = Math.max(parallel, options.requests ?? requestsEach * parallel);
    return { parallel, requests, promptTokens, outputTokens };
  });
  note(plan(loads, model.config.prices));
  const levels: BenchLevel[] = [];
  let interrupted: unknown;
  try {
    const first = { prompt: 'Answer with the one word: ready', maxTokens: 16 };
    await streamedAnswer(model, wire, first, { within, signal });
    for (const load of loads) {
      const level = await benchLevel(model, wire, load, { within, signal });
      levels.push(level);
      const done = `${level.tokensPerSecond.toFixed(1)} tokens/s in ${duration(level.durationMs)}`;
      note(text`parallel ${load.parallel}: ${done}`);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    interrupted = signal.reason;
  }
  return {
    model: model.name,
    wire,
    load: { promptTokens, outputTokens },
    levels,
    used: model.used,
    interrupted,
    recommendation: recommendParallel(levels),
    configured: 'baseUrl' in model.config ? model.config.maxParallel : undefined,
  };
}

/** What the measurement may use, noted before it begins. */
function plan(loads: readonly BenchLoad[], prices: Parameters<typeof costOf>[1]) {
  const requests = loads.reduce((total, load) => total + load.requests, 0);
  const [load] = loads;
  const inputTokens = requests * (load?.promptTokens ?? 0);
  const outputTokens = requests * (load?.outputTokens ?? 0);
  const usd = costOf({ inputTokens, outputTokens }, prices);
  const cost = usd === undefined ? '' : `, up to ${usd.toFixed(2)} USD`;
  return text`${requests} requests: about ${count(inputTokens)} tokens in, up to ${count(outputTokens)} out${cost}`;
}
