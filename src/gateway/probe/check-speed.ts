import { messageOf } from '../../offsite-error.ts';
import type { Wire } from '../../suite/model-config.ts';
import type { DirectModel } from './direct-model.ts';
import { median, tokensPerSecond } from './speeds.ts';
import { type StreamedAnswer, streamedAnswer } from './streamed-answer.ts';

export interface CheckedSpeed {
  /** `together`: it streams, but everything arrives at once. */
  streaming: 'works' | 'together' | 'failed';
  reason?: string;
  /** Medians; undefined if nothing was measured. */
  firstTokenMs?: number | undefined;
  tokensPerSecond?: number | undefined;
  /** Set if the answers did not report their tokens. */
  estimated?: true;
  samples: number;
}

/** Measures streamed answers, one after another. Throws only the signal's reason. */
export async function checkSpeed(
  model: DirectModel,
  wire: Wire,
  { samples, within, signal }: { samples: number; within: number; signal: AbortSignal },
): Promise<CheckedSpeed> {
  const answers: StreamedAnswer[] = [];
  let reason: string | undefined;
  for (let sample = 1; sample <= samples && reason === undefined; sample += 1) {
    // Another beginning each time, or a cache of prompts would be measured.
    const prompt = `Sample ${sample}. Write the numbers from one to sixty as words, separated by commas.`;
    try {
      answers.push(await streamedAnswer(model, wire, { prompt, maxTokens: 256 }, { within, signal }));
    } catch (error) {
      signal.throwIfAborted();
      reason = messageOf(error);
    }
  }
  const measured = {
    firstTokenMs: median(answers.flatMap(({ firstTokenMs }) => firstTokenMs ?? [])),
    tokensPerSecond: median(answers.flatMap((answer) => tokensPerSecond(answer) ?? [])),
    ...(answers.some(({ estimated }) => estimated) && { estimated: true as const }),
    samples: answers.length,
  };
  if (reason !== undefined) return { streaming: 'failed', reason, ...measured };
  const together = answers.every(({ arrivals, outputTokens }) => arrivals <= 1 && outputTokens > 8);
  return { streaming: together ? 'together' : 'works', ...measured };
}
