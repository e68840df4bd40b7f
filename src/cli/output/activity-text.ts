import { fittedName, flowed } from '../../text/fit.ts';
import { ours, type Printable, styled, text, type Value } from '../../text/printable.ts';
import { cost, count, elapsed, plural, timeLeft } from '../../text/quantities.ts';
import type { OpenBuildState } from '../../trial/prepare/obtain-image.ts';
import type { ActivityState } from './activity.ts';

/** What the verdicts of trials are called. */
export type VerdictWords =
  ActivityState['verdicts'] extends Record<infer Verdict extends string, number>
    ? Record<Verdict, string>
    : never;

export const trialWords: VerdictWords = { passed: 'passed', failed: 'failed', void: 'void' };

/** What is said of a build; nothing if it simply runs. */
export const buildStates: Record<OpenBuildState, string> = {
  running: '',
  queued: 'waits for its turn',
  'other-agent': 'by another process',
};

/** `2 failed`, in the verdict's color unless there are none. */
export function verdictParts({ verdicts, done }: ActivityState, words: VerdictWords): Printable[] {
  if (done === 0) return [];
  return [
    colored('green', verdicts.passed, words.passed),
    colored('red', verdicts.failed, words.failed),
    colored('yellow', verdicts.void, words.void),
  ];
}

function colored(color: 'green' | 'red' | 'yellow', number: number, word: string): Printable {
  const part = ours(`${number} ${word}`);
  return number > 0 ? styled(color, part) : part;
}

/** `3 harness, 1 verify`; undefined if no trial runs. */
export function phasesOf({ running }: ActivityState): string | undefined {
  if (running.length === 0) return undefined;
  const phases = Map.groupBy(running, ({ phase }) => phase);
  return [...phases].map(([phase, trials]) => `${trials.length} ${phase}`).join(', ');
}

/** `1.2M tokens`, `$3.21`, or `≥ $3.21` if not all prices are known; what is zero is left out. */
export function spentParts({ spent: { tokens, usd, isPartial } }: Pick<ActivityState, 'spent'>): string[] {
  const spent = `${isPartial ? '≥ ' : ''}${cost(usd)}`;
  return [...(tokens > 0 ? [`${count(tokens)} tokens`] : []), ...(usd > 0 ? [spent] : [])];
}

/** How many terminal cells a name takes in a line of a log. */
const nameWidth = 40;

/** How many builds a line of a log names. */
const namedBuilds = 2;

/** Lines that say what is going on, for an output that cannot redraw lines. */
export function activityLines(state: ActivityState, words: VerdictWords, width: number): Printable {
  const parts = groupsOf(state, words).filter((group) => group.length > 0);
  const punctuated = parts.flatMap((group, position) =>
    group.map((part, index) => {
      if (index < group.length - 1) return text`${part},`;
      return position < parts.length - 1 ? text`${part};` : part;
    }),
  );
  return flowed(punctuated, { width, indent: 2, gap: 1 });
}

function groupsOf(state: ActivityState, words: VerdictWords): Printable[][] {
  const { planned, done, steps, outages, builds, running, leftMs } = state;
  const phases = phasesOf(state);
  return [
    [...(planned > 0 ? [ours(`${done} of ${planned} done`)] : []), ...verdictParts(state, words)],
    ...steps.map(({ title, forMs }) => [lasting(title, forMs)]),
    ...outages.map(({ of, forMs }) => [lasting(text`${of} has been down`, forMs)]),
    ...buildGroups(builds),
    phases === undefined ? [] : [ours(`running: ${phases}`)],
    ...running.slice(0, 1).map(({ trial, forMs }) => {
      return [text`longest: ${lasting(text`${trial.case} · ${trial.which}`, forMs)}`];
    }),
    spentParts(state).map(ours),
    leftMs === undefined ? [] : [ours(timeLeft(leftMs))],
  ];
}

function buildGroups(builds: ActivityState['builds']): Printable[][] {
  const open = builds.filter(({ state }) => state !== 'queued').slice(0, namedBuilds);
  const more = builds.length - open.length;
  return [
    ...open.map(({ what, state, forMs }) => {
      return [lasting(state === 'other-agent' ? text`${what} by another process` : what, forMs)];
    }),
    more > 0 ? [ours(`${plural(more, 'build')} to follow`)] : [],
  ];
}

function lasting(what: Value, forMs: number): Printable {
  return text`${fittedName(what, nameWidth)} for ${ours(elapsed(forMs))}`;
}
