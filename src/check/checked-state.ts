import { z } from 'zod';
import { trialSpec } from '../agent/trial-spec.ts';
import { Cause } from '../record/cause.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import type { PlannedCase, SuitePlan } from '../suite/plan.ts';
import { joined, ours, type Printable, present, text } from '../text/printable.ts';
import { plural } from '../text/quantities.ts';
import { solvedBy, type TrialSolution, type TrialSpec, type TrialSteps } from '../trial/spec.ts';

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
  unfinished?: { state: CheckedState['state']; why: string; ended: 'interrupted' | 'failed' }[];
  /** The images that the configuration uses in place of those that the case names. */
  mappedImages?: TrialRecord['mappedImages'];
}

/** One line: `3 of 3 cases are sound`, or how many are not, and which. Only a solution shows that one is. */
export function summedUp(checked: readonly CheckedCase[]): Printable {
  const all = plural(checked.length, 'case');
  const idsOf = (wanted: Soundness) =>
    checked.filter((one) => soundnessOf(one) === wanted).map(({ id }) => id);
  const [wrong, undecided] = [idsOf('not sound'), idsOf('undecided')];
  const [are, have] = [wrong.length === 1 ? 'is' : 'are', undecided.length === 1 ? 'has' : 'have'].map(ours);
  const parts = present([
    wrong.length > 0 && text`${wrong.length} of ${all} ${are ?? ''} not sound: ${namesText(wrong)}`,
    undecided.length > 0 &&
      text`${undecided.length} of ${all} ${have ?? ''} no verdict: ${namesText(undecided)}`,
  ]);
  if (parts.length > 0) return joined(parts, '; ');
  const unproven = checked.filter(({ states }) => states.length === 1).map(({ id }) => id);
  const sound = checked.length - unproven.length;
  const blind = checked.filter(({ states }) => states.some(hasBlindJudge)).map(({ id }) => id);
  const but = blind.length === 0 ? ours('') : text`, but a judge accepts untouched work: ${namesText(blind)}`;
  const soundText = text`${sound} of ${all} ${ours(sound === 1 ? 'is' : 'are')} sound${but}`;
  if (unproven.length === 0) return soundText;
  const solvable = `${unproven.length === 1 ? 'fails' : 'fail'} untouched, but no solution shows that it can pass`;
  const rest = text`${unproven.length} ${ours(solvable)}: ${namesText(unproven)}`;
  return sound === 0 ? rest : text`${soundText}; ${rest}`;
}

function hasBlindJudge({ state, judgments = [] }: CheckedState): boolean {
  return state === 'untouched' && judgments.some(({ reaches }) => reaches);
}

/** How many cases a line names. */
const namedCases = 5;

/** `a, b, c, d, e and 4 more cases` */
export function namesText(names: readonly string[], separator = ', '): Printable {
  const more = names.length - namedCases;
  const named = text`${names.slice(0, namedCases).join(separator)}`;
  return more > 0 ? text`${named} and ${plural(more, 'more case')}` : named;
}

/** A state of a case's workspace, and the trial that grades it. */
export interface StateToCheck {
  id: string;
  state: CheckedState['state'];
  spec: TrialSpec;
}

/** The states of a case: untouched, and solved if its author has a way to solve it. */
export function statesOf(plan: SuitePlan, planned: PlannedCase): StateToCheck[] {
  const { id } = planned.request;
  const [variant] = plan.variants;
  if (!variant) throw new Error('a suite has at least one variant');
  const trial = { batchId: 'check', runId: 'check', ordinal: 0 };
  const spec = trialSpec(plan, { case: planned, variant }, trial);
  const { answers, hidesLaterCommits = !readsHistory(spec) } = spec;
  const searched = { ...checkedBy(spec, nothing), answers, hidesLaterCommits };
  const untouched = { id, state: 'untouched' as const, spec: searched };
  const solved = solvedSpec(spec);
  return solved ? [untouched, { id, state: 'solved', spec: solved }] : [untouched];
}

/**
 * Whether the author's own solution works with the history of a repository. If so, commits that are not in
 * the history of HEAD may be what the case is about.
 */
function readsHistory({ solution, steps }: TrialSpec): boolean {
  const solutions = [solution, ...(steps?.list ?? []).map((step) => step.solution)];
  const texts = solutions.flatMap((one) => [
    one?.run ?? '',
    ...(one?.files ?? []).map((file) => ('content' in file ? file.content.toString('utf8') : '')),
  ]);
  return texts.some((text) => usesHistory.test(text));
}

const usesHistory =
  /\bgit\b[^\n|;&]* (bundle|branch|cat-file|checkout|cherry-pick|fsck|log|merge|pull|rebase|reflog|reset|restore|revert|show|stash|switch)\b/;

const nothing: TrialSolution = { files: [], run: ':', env: {} };

/**
 * The trial with this in place of its agent. No solution is a control of its grading: without a verdict of
 * its own, a state shows that the case is not sound.
 */
function checkedBy(spec: TrialSpec, solution: TrialSolution): TrialSpec {
  return { ...solvedBy(spec, solution), solution: undefined };
}

/** The trial that solves a case. Undefined if its author does not say how. */
function solvedSpec({ solution, steps, ...spec }: TrialSpec): TrialSpec | undefined {
  if (steps) return solvedSteps(spec, steps);
  if (!solution) return undefined;
  const { environment, sandbox, testsIn = { environment, sandbox } } = spec;
  const files = [...(environment.files ?? []), ...solution.files];
  // Only this trial gets the files of the solution, and its tests do not.
  const own = solution.files.length > 0 ? { testsIn, environment: { ...environment, files } } : {};
  return { ...checkedBy(spec, solution), ...own };
}

/** Each step gets the files of its own solution, and none of an earlier one. */
function solvedSteps(spec: TrialSpec, steps: TrialSteps): TrialSpec | undefined {
  const list = steps.list.flatMap(({ solution, ...step }) => {
    if (!solution) return [];
    const folders = solution.files.map(({ path }) => `/${path.split('/')[1]}`);
    return {
      ...step,
      emptied: [...new Set([...step.emptied, ...folders])],
      files: [...step.files, ...solution.files],
      profile: solvedBy(spec, solution).profile,
    };
  });
  if (list.length < steps.list.length) return undefined;
  return { ...checkedBy(spec, nothing), steps: { ...steps, list } };
}
