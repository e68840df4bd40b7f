import { messageOf } from '../../base/offsite-error.ts';
import type { Wire } from '../../suite/model-config.ts';
import { isLimited } from '../chat/model-errors.ts';
import { type DirectModel, type StreamedAnswer, streamedAnswer } from './direct-model.ts';

/** What is sent at one level of parallelism. */
export interface BenchLoad {
  /** Requests in flight. */
  parallel: number;
  /** Requests in total. */
  requests: number;
  /** Tokens of each prompt, about. */
  promptTokens: number;
  /** The most tokens of each answer. */
  outputTokens: number;
}

/** How a model did at one level of parallelism. Times are milliseconds; undefined if no request succeeded. */
export interface BenchLevel {
  parallel: number;
  succeeded: number;
  /** Requests that the model refused with 429. */
  limited: number;
  /** Requests that failed in another way. */
  failed: number;
  /** The first failure. */
  failure: string | undefined;
  durationMs: number;
  /** Output tokens per second of all requests together. */
  tokensPerSecond: number;
  /** The median of single requests. */
  requestTokensPerSecond: number | undefined;
  firstTokenP50: number | undefined;
  firstTokenP95: number | undefined;
  latencyP50: number | undefined;
  /** Set if answers did not report their tokens. */
  estimated?: true;
}

/**
 * Sends requests with as many in flight as the level says, without retries.
 *
 * @param within milliseconds for each answer
 *
 * Throws only the signal's reason.
 */
export async function benchLevel(
  model: DirectModel,
  wire: Wire,
  load: BenchLoad,
  { within, signal }: { within: number; signal: AbortSignal },
): Promise<BenchLevel> {
  const answers: StreamedAnswer[] = [];
  const failures: { limited: boolean; message: string }[] = [];
  const startedAt = performance.now();
  let next = 0;
  const work = async () => {
    while (next < load.requests) {
      next += 1;
      const request = { prompt: benchPrompt(load, next), maxTokens: load.outputTokens };
      try {
        answers.push(await streamedAnswer(model, wire, request, { within, signal }));
      } catch (error) {
        signal.throwIfAborted();
        const limited = isLimited(error);
        failures.push({ limited, message: messageOf(error) });
      }
    }
  };
  await Promise.all(Array.from({ length: load.parallel }, work));
  const durationMs = performance.now() - startedAt;
  const tokens = answers.reduce((total, { outputTokens }) => total + outputTokens, 0);
  const firsts = answers.flatMap(({ firstTokenMs }) => firstTokenMs ?? []);
  const limited = failures.filter((failure) => failure.limited).length;
  return {
    parallel: load.parallel,
    succeeded: answers.length,
    limited,
    failed: failures.length - limited,
    failure: failures[0]?.message,
    durationMs,
    tokensPerSecond: tokens / (durationMs / 1000),
    requestTokensPerSecond: percentile(
      answers.flatMap((answer) => tokensPerSecond(answer) ?? []),
      0.5,
    ),
    firstTokenP50: percentile(firsts, 0.5),
    firstTokenP95: percentile(firsts, 0.95),
    latencyP50: percentile(
      answers.map(({ totalMs }) => totalMs),
      0.5,
    ),
    ...(answers.some(({ estimated }) => estimated) && { estimated: true as const }),
  };
}

/**
 * A prompt of about the given number of tokens. Each begins differently, so that no cache of prompts is
 * measured.
 */
function benchPrompt({ parallel, promptTokens, outputTokens }: BenchLoad, number: number): string {
  const begin = `Request ${parallel}-${number}. `;
  const end = `\nWrite a story of at least ${outputTokens} words about a lighthouse.`;
  const sentence = 'The lamp turns and the ships pass by. ';
  // A token has about four characters.
  const filler = Math.max(0, promptTokens * 4 - begin.length - end.length);
  return begin + sentence.repeat(Math.ceil(filler / sentence.length)).slice(0, filler) + end;
}

export interface Recommendation {
  /** Undefined if even the lowest level had failures. */
  maxParallel: number | undefined;
  why: string;
}

/** A level is worth it if it brings at least this much more throughput. */
const leastGain = 0.1;
/** Answers must not take this many times as long as at the lowest level. */
const muchSlower = 2;

/**
 * The level up to which more parallelism pays: beyond it, throughput grows by less than a tenth, answers take
 * twice as long as at the lowest level, or requests fail.
 *
 * @param levels in ascending order
 */
export function recommendParallel(levels: readonly BenchLevel[]): Recommendation {
  const [lowest, ...higher] = levels;
  if (!lowest) return { maxParallel: undefined, why: 'nothing was measured' };
  const broken = brokenAt(lowest);
  if (broken !== undefined) return { maxParallel: undefined, why: broken };
  let best = lowest;
  for (const level of higher) {
    const why = brokenAt(level) ?? notWorth(level, best, lowest);
    if (why !== undefined) return { maxParallel: best.parallel, why };
    best = level;
  }
  const why = `throughput still grows at ${best.parallel}, the highest that was measured`;
  return { maxParallel: best.parallel, why };
}

function brokenAt({ parallel, limited, failed, succeeded, failure }: BenchLevel): string | undefined {
  const all = limited + failed + succeeded;
  if (limited > 0) return `at ${parallel}, ${limited} of ${all} requests were refused with 429`;
  if (failed > 0) return `at ${parallel}, ${failed} of ${all} requests failed: ${failure}`;
  return undefined;
}

function notWorth(level: BenchLevel, best: BenchLevel, lowest: BenchLevel): string | undefined {
  const gain = level.tokensPerSecond / best.tokensPerSecond - 1;
  if (!(gain >= leastGain)) {
    const change = gain < 0 ? `falls by ${percent(-gain)}` : `grows by only ${percent(gain)}`;
    return `from ${best.parallel} to ${level.parallel}, throughput ${change}`;
  }
  const slower = (level.latencyP50 ?? 0) / (lowest.latencyP50 ?? 0);
  if (slower >= muchSlower)
    return `at ${level.parallel}, an answer takes ${slower.toFixed(1)} times as long as at ${lowest.parallel}`;
  return undefined;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/**
 * Tokens per second of one answer after its first token, or of the whole answer if it arrived at once.
 * Undefined if the answer is too short to measure.
 */
export function tokensPerSecond(answer: StreamedAnswer): number | undefined {
  const { firstTokenMs, lastTokenMs, totalMs, outputTokens, arrivals } = answer;
  if (firstTokenMs === undefined || lastTokenMs === undefined || outputTokens < 2) return undefined;
  if (arrivals <= 1) return outputTokens / (totalMs / 1000);
  return (outputTokens - 1) / ((lastTokenMs - firstTokenMs) / 1000);
}

export function median(values: readonly number[]): number | undefined {
  return percentile(values, 0.5);
}

/** The smallest value that is at least as large as this share of the values. Undefined without values. */
function percentile(values: readonly number[], share: number): number | undefined {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}
