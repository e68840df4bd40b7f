import type { Clock } from '../../base/clock.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { modelAnswers } from '../../bounds/model.ts';
import { type Wire, wires } from '../../suite/model-config.ts';
import { isLimited, ModelRefused } from '../chat/model-errors.ts';
import { waitAsked } from '../send.ts';
import { median, tokensPerSecond } from './bench-level.ts';
import { askDirectly, type DirectModel, type StreamedAnswer, streamedAnswer } from './direct-model.ts';

export interface CheckedWire {
  wire: Wire;
  /**
   * `missing`: the server has no such route. `failed`: it has, or may have, but gave no answer. `limited`: it
   * asks to wait, however long this check has waited.
   */
  state: 'works' | 'missing' | 'failed' | 'limited';
  reason?: string;
}

/**
 * Sends a tiny request over each wire.
 *
 * @param known a wire that has already given an answer
 * @param options.within milliseconds for each answer
 */
export async function checkWires(
  model: DirectModel,
  known: Wire | undefined,
  options: { within: number; signal: AbortSignal; clock: Clock },
): Promise<CheckedWire[]> {
  const checked = new Map<Wire, CheckedWire>();
  // One after another, since a local server may answer one request at a time. Those that are configured come
  // first: some servers answer nobody for a while after a request that they do not know.
  for (const wire of new Set([...model.wires, ...wires]))
    checked.set(wire, wire === known ? { wire, state: 'works' } : await checkedWire(model, wire, options));
  return wires.flatMap((wire) => checked.get(wire) ?? []);
}

/** Milliseconds that the words of a 429 ask to wait. LiteLLM says it only there: "Try again in 5 seconds." */
export function waitNamed(words: string): number {
  const [, seconds] = /\bin (\d{1,3}(?:\.\d+)?) ?s(?:ec|\b)/i.exec(words) ?? [];
  return seconds === undefined ? 5_000 : Number(seconds) * 1000;
}

async function checkedWire(
  model: DirectModel,
  wire: Wire,
  { within, signal, clock }: { within: number; signal: AbortSignal; clock: Clock },
): Promise<CheckedWire> {
  const messages = [{ from: 'user' as const, text: 'Answer with the one word: ready' }];
  for (let waited = 0; ; ) {
    try {
      const asking = AbortSignal.any([signal, AbortSignal.timeout(within)]);
      await askDirectly(model, wire, { messages, maxTokens: 16 }, asking);
      return { wire, state: 'works' };
    } catch (error) {
      signal.throwIfAborted();
      const answer = error instanceof ModelRefused ? error.answer : { status: 0, headers: {} };
      // LM Studio answers 200 with an error where it has no route.
      const status = isUnreadable(error) ? 200 : answer.status;
      const isMissing = [200, 404, 405, 501].includes(status) || (status >= 300 && status < 400);
      const reason = messageOf(error);
      if (isMissing || status !== 429) return { wire, state: isMissing ? 'missing' : 'failed', reason };
      const wait = Math.max(waitAsked(answer.headers, clock.now()) ?? waitNamed(reason), 1000);
      if (waited + wait > modelAnswers.time.checkWait) return { wire, state: 'limited', reason };
      waited += wait;
      await clock.sleep(wait, signal);
    }
  }
}

function isUnreadable(error: unknown): boolean {
  return error instanceof OffsiteError && error.code === 'MODEL_ANSWER_UNREADABLE';
}

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
      if (isLimited(error) && waited + wait <= modelAnswers.time.checkWait) {
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
