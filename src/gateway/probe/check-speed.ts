import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/offsite-error.ts';
import { modelAnswers } from '../../bounds/model.ts';
import type { Wire } from '../../suite/model-config.ts';
import { waitNamed } from './check-wires.ts';
import type { DirectModel } from './direct-model.ts';
import { median, tokensPerSecond } from './speeds.ts';
import { type StreamedAnswer, StreamRefused, streamedAnswer } from './streamed-answer.ts';

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

/**
 * Measures streamed answers, one after another. Waits if the server asks to, because of what this check asked
 * before. Throws only the signal's reason.
 */
export async function checkSpeed(
  model: DirectModel,
  wire: Wire,
  { samples, within, signal, clock }: { samples: number; within: number; signal: AbortSignal; clock: Clock },
): Promise<CheckedSpeed> {
  const answers: StreamedAnswer[] = [];
  let reason: string | undefined;
  let waited = 0;
  for (let sample = 1; sample <= samples && reason === undefined; ) {
    // Another beginning each time, or a cache of prompts would be measured.
    const prompt = `Sample ${sample}. Write the numbers from one to sixty as words, separated by commas.`;
    try {
      answers.push(await streamedAnswer(model, wire, { prompt, maxTokens: 256 }, { within, signal }));
      sample += 1;
    } catch (error) {
      signal.throwIfAborted();
      const wait = waitNamed(messageOf(error));
      const isLimited = error instanceof StreamRefused && error.status === 429;
      if (isLimited && waited + wait <= modelAnswers.time.checkWait) {
        waited += wait;
        await clock.sleep(wait, signal);
      } else reason = messageOf(error);
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
