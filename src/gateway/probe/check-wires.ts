import type { Clock } from '../../base/clock.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { modelAnswers } from '../../bounds/model.ts';
import { type Wire, wires } from '../../suite/model-config.ts';
import { isLimited, ModelRefused } from '../chat/model-errors.ts';
import { waitAsked } from '../send.ts';
import { median, tokensPerSecond } from './bench-level.ts';
import { askDirectly, type DirectModel } from './direct-model.ts';
import { type StreamedAnswer, streamedAnswer } from './streamed-answer.ts';

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
  let waited = 0;
  while (true) {
    const { asked, ...found } = await checkWire(model, wire, { within, signal, clock });
    if (found.state !== 'limited' || waited + asked > modelAnswers.time.checkWait) return found;
    waited += asked;
    await clock.sleep(asked, signal);
  }
}

async function checkWire(
  model: DirectModel,
  wire: Wire,
  { within, signal, clock }: { within: number; signal: AbortSignal; clock: Clock },
): Promise<CheckedWire & { asked: number }> {
  const request = {
    messages: [{ from: 'user', text: 'Answer with the one word: ready' }],
    maxTokens: 16,
  } as const;
  try {
    await askDirectly(model, wire, request, AbortSignal.any([signal, AbortSignal.timeout(within)]));
    return { wire, state: 'works', asked: 0 };
  } catch (error) {
    signal.throwIfAborted();
    const answer = error instanceof ModelRefused ? error.answer : { status: 0, headers: {} };
    // LM Studio answers 200 with an error where it has no route.
    const { status } = isUnreadable(error) ? { status: 200 } : answer;
    const isMissing = [200, 404, 405, 501].includes(status) || (status >= 300 && status < 400);
    const state = isMissing ? 'missing' : status === 429 ? 'limited' : 'failed';
    const reason = messageOf(error);
    const asked = waitAsked(answer.headers, clock.now()) ?? waitNamed(reason);
    return { wire, state, reason, asked: Math.max(asked, 1000) };
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
