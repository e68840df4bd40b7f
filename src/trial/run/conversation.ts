import type { Clock } from '../../base/clock.ts';
import type { Usage } from '../../contract/report.ts';
import type { HarnessRun, HarnessSession, TurnLimits } from '../../harness/runner.ts';
import type { CommandEntry, HarnessEnding, HarnessEvent } from '../../record/harness.ts';
import { sumIfKnown, sumOfUsage } from '../../record/usage.ts';

/** Answers the harness: says something more, or ends the conversation and gives a reason. */
export type Answerer = (
  said: readonly Utterance[],
  signal: AbortSignal,
) => Promise<{ says: string } | { ends: string }>;

export interface Utterance {
  from: 'user' | 'harness';
  text: string;
}

/** The combined result of all turns of a harness. */
export interface Conversation {
  ending: HarnessEnding;
  trajectory: CommandEntry[];
  events: HarnessEvent[];
  /** Whether the harness reported more than `trajectory` and `events` hold. */
  isCut: boolean;
  finalMessage: string | undefined;
  version: string | undefined;
  /** The harness's own counts. A number that some turn did not report is left out. */
  usage: Usage | undefined;
  commandCount: number | undefined;
  turns: number;
  /** The last output of the last turn. */
  lastOutput: string | undefined;
}

export interface ConversationLimits {
  /** The limit for all turns together. */
  timeoutMs: number;
  signal: AbortSignal;
  stop: AbortSignal;
  /**
   * Called before each turn. Passes the harness what is left of its time and budgets, if it should know that.
   *
   * @param until when the last turn is ended, epoch milliseconds
   */
  passTimeLeft?: ((until: number) => TurnLimits['left']) | undefined;
}

/**
 * Gives the harness its prompt, then each answer of `answerer`, until one of them ends the conversation.
 * Without an answerer, the conversation is a single turn.
 */
export async function converse(
  session: HarnessSession,
  prompt: string,
  answerer: Answerer | undefined,
  limits: ConversationLimits,
  clock: Clock,
): Promise<Conversation> {
  const until = clock.now() + limits.timeoutMs;
  const said: Utterance[] = [];
  const runs: HarnessRun[] = [];
  const events: HarnessEvent[] = [];
  let message = prompt;
  for (;;) {
    said.push({ from: 'user', text: message });
    events.push({ kind: 'user', at: clock.now(), text: message });
    const left = Math.max(1, until - clock.now());
    const { signal, stop, passTimeLeft } = limits;
    const run = await session.turn(message, { signal, stop, timeoutMs: left, left: passTimeLeft?.(until) });
    runs.push(run);
    events.push(...run.events);
    if (run.ending.ended === 'timed-out') run.ending.afterMs = limits.timeoutMs;
    if (!answerer || run.ending.ended !== 'exited') break;
    said.push({ from: 'harness', text: run.finalMessage ?? '' });
    const answer = await answerer(said, limits.signal);
    if ('ends' in answer) {
      events.push({ kind: 'note', at: clock.now(), text: `the user ends the conversation: ${answer.ends}` });
      break;
    }
    message = answer.says;
  }
  return combined(runs, events);
}

function combined(runs: readonly HarnessRun[], events: HarnessEvent[]): Conversation {
  const last = runs.at(-1);
  if (!last) throw new Error('a conversation has at least one turn');
  return {
    ending: last.ending,
    trajectory: runs.flatMap(({ trajectory }) => trajectory),
    events,
    isCut: runs.some(({ isCut }) => isCut === true),
    finalMessage: last.finalMessage,
    version: runs.find(({ version }) => version !== undefined)?.version,
    usage: runs.some(({ usage }) => usage) ? sumOfUsage(runs.map(({ usage = {} }) => usage)) : undefined,
    commandCount: sumIfKnown(runs.map(({ commandCount }) => commandCount)),
    turns: runs.length,
    lastOutput: last.lastOutput,
  };
}
