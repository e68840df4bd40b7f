import { z } from 'zod';
import { Cause } from '../record/cause.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { joined, ours, type Printable, text } from '../text/printable.ts';
import { plural } from '../text/quantities.ts';

/** The result of grading a case in one state of its workspace. */
export const CheckedState = z.object({
  state: z.enum(['untouched', 'solved']),
  /** One verdict for each repetition. */
  verdicts: z.array(z.enum(['passed', 'failed', 'void'])),
  /** Verify steps and validations whose result differed between repetitions. */
  flaky: z.array(z.string()),
  /** Why a grading did not pass: its cause, or the first check that failed, even if it should fail. */
  cause: z.string().optional(),
  /** What the first unexpected grading printed; if all are as expected, the first that did not pass. */
  output: z.string().optional(),
  /** The commands of the solution that failed in the first unexpected grading, with what they printed. */
  solution: z.string().optional(),
  /** What the gradings noted besides, such as a pattern that matches no file. */
  notes: z.array(z.string()).optional(),
  /** What judges gave, in the first grading. */
  judgments: z
    .array(
      z.object({
        name: z.string(),
        /** `0.4 < 0.7` */
        score: z.string(),
        /** Undefined without a threshold. */
        reaches: z.boolean().optional(),
      }),
    )
    .optional(),
  causeKind: Cause.shape.kind.optional(),
  asExpected: z.boolean(),
  /** Whether an agent could find what grades or solves the case. */
  givesAway: z.literal(true).optional(),
  /** Whether the case's time was used up before all gradings of this state were done. */
  timedOut: z.literal(true).optional(),
  /** Whether an earlier check found this, with the same case, images and settings. */
  kept: z.literal(true).optional(),
});
export type CheckedState = z.infer<typeof CheckedState>;

/** Causes that say nothing about the case. */
const ofOthers: ReadonlySet<string | undefined> = new Set(['infrastructure', 'model', 'unknown']);

/**
 * Whether nothing is known of a state: the machine or a judge's model was at fault, or the time was used up.
 */
export function isUndecided({ causeKind, timedOut }: CheckedState): boolean {
  return timedOut === true || ofOthers.has(causeKind);
}

export type Soundness = 'sound' | 'not sound' | 'undecided';

export function soundnessOf({ states }: Pick<CheckedCase, 'states'>): Soundness {
  const wrong = states.filter(({ asExpected }) => !asExpected);
  if (wrong.length === 0) return 'sound';
  return wrong.every(isUndecided) ? 'undecided' : 'not sound';
}

export interface CheckedCase {
  id: string;
  states: CheckedState[];
  /** The states without a result, if the check was stopped. */
  unfinished?: { state: CheckedState['state']; why: string }[];
  /** The images that the configuration uses in place of those that the case names. */
  mappedImages?: TrialRecord['mappedImages'];
}

/** One line: `3 of 3 cases are sound`, or how many are not, and which. Only a solution shows that one is. */
export function summedUp(checked: readonly CheckedCase[]): Printable {
  const all = plural(checked.length, 'case');
  const idsOf = (wanted: Soundness) =>
    checked.filter((one) => soundnessOf(one) === wanted).map(({ id }) => id);
  const [wrong, undecided] = [idsOf('not sound'), idsOf('undecided')];
  const parts = [
    ...(wrong.length > 0
      ? [
          text`${wrong.length} of ${all} ${ours(wrong.length === 1 ? 'is' : 'are')} not sound: ${namesText(wrong)}`,
        ]
      : []),
    ...(undecided.length > 0
      ? [
          text`${undecided.length} of ${all} ${ours(undecided.length === 1 ? 'has' : 'have')} no verdict: ${namesText(undecided)}`,
        ]
      : []),
  ];
  if (parts.length > 0) return joined(parts, '; ');
  const unproven = checked.filter(({ states }) => states.length === 1).map(({ id }) => id);
  const sound = checked.length - unproven.length;
  const soundText = text`${sound} of ${all} ${ours(sound === 1 ? 'is' : 'are')} sound`;
  if (unproven.length === 0) return soundText;
  const solvable = `${unproven.length === 1 ? 'fails' : 'fail'} untouched, but no solution shows that it can pass`;
  const rest = text`${unproven.length} ${ours(solvable)}: ${namesText(unproven)}`;
  return sound === 0 ? rest : text`${soundText}; ${rest}`;
}

/** How many cases a line names. */
const namedCases = 5;

/** `a, b, c, d, e and 4 more cases` */
export function namesText(names: readonly string[], separator = ', '): Printable {
  const more = names.length - namedCases;
  const named = text`${names.slice(0, namedCases).join(separator)}`;
  return more > 0 ? text`${named} and ${plural(more, 'more case')}` : named;
}
