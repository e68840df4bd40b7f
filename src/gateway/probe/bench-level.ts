import { messageOf } from '../../base/offsite-error.ts';
import type { Wire } from '../../suite/model-config.ts';
import type { DirectModel } from './direct-model.ts';
import { percentile, tokensPerSecond } from './speeds.ts';
import { type StreamedAnswer, StreamRefused, streamedAnswer } from './streamed-answer.ts';

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
        const limited = error instanceof StreamRefused && error.status === 429;
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
