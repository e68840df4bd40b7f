import type { Judgment } from '../contract/validation.ts';
import type { PhaseName } from '../record/cause.ts';
import { failuresOf, reachesThreshold, scoreText } from '../record/failures.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { duration } from '../text/quantities.ts';
import type { CheckedState } from './checked-state.ts';

/** How one grading of a state ended. */
export type Grading =
  | { kind: 'graded'; result: TrialRecord }
  /** The case's time was used up in this phase; undefined if the grading had not begun. */
  | { kind: 'stopped'; phase: PhaseName | undefined; limitMs: number };

/** What the gradings of a state say together. */
export function stateOf(state: CheckedState['state'], gradings: readonly Grading[]): CheckedState {
  const results = gradings.flatMap((one) => (one.kind === 'graded' ? [one.result] : []));
  const stopped = gradings.flatMap((one) => (one.kind === 'stopped' ? [one] : []));
  const verdicts = gradings.map((one) => (one.kind === 'graded' ? one.result.verdict : 'void'));
  const cause = results.find((result) => result.cause)?.cause;
  const wrong = results.find((result) => !isExpected(state, result));
  const shown = wrong ?? results.find(({ verdict }) => verdict !== 'passed');
  const flaky = differing(results);
  // The rewards of tests are shown with the tests.
  const judgments = (results[0]?.judgments ?? []).filter(({ evaluator }) => evaluator !== 'tests');
  const notes = [...new Set(results.flatMap(notesOf))];
  return {
    state,
    verdicts,
    flaky,
    cause:
      timeUsedUp(stopped) ??
      (cause && `${cause.message}${wrong ? leavesOut(state, wrong) : ''}`) ??
      (shown && reasonOf(shown)),
    output: shown && printedBy(shown),
    solution: wrong && failedCommands(wrong),
    causeKind: cause?.kind,
    ...(cause?.givesAway && { givesAway: true as const }),
    ...(notes.length > 0 && { notes }),
    ...(judgments.length > 0 && { judgments: judgments.map(shownJudgment) }),
    asExpected: stopped.length === 0 && flaky.length === 0 && wrong === undefined,
    ...(stopped.length > 0 && { timedOut: true as const }),
  };
}

/** Undefined if no grading was stopped. */
function timeUsedUp(stopped: readonly Extract<Grading, { kind: 'stopped' }>[]): string | undefined {
  const one = stopped.find(({ phase }) => phase !== undefined) ?? stopped[0];
  if (!one) return undefined;
  // In a check, the solution takes the place of the harness.
  const begun = one.phase === 'harness' ? 'solution' : one.phase;
  const where = begun === undefined ? 'before this state was graded' : `in ${begun}`;
  return `the time of the case, ${duration(one.limitMs)} (--case-timeout), was used up ${where}`;
}

function shownJudgment(judgment: Judgment): NonNullable<CheckedState['judgments']>[number] {
  const { name, threshold } = judgment;
  const reaches = threshold === undefined ? {} : { reaches: reachesThreshold(judgment) };
  return { name, score: scoreText(judgment), ...reaches };
}

/** Whether a grading has the result that a sound case has in this state. */
export function isExpected(state: CheckedState['state'], result: TrialRecord): boolean {
  if (state === 'solved') return result.verdict === 'passed';
  // Where bash cannot read the command, the step fails whatever an agent does.
  return result.verdict === 'failed' && !result.verifySteps?.some(({ unreadable }) => unreadable);
}

/**
 * Said of an untouched state that is graded without a verdict: so is the work of an agent that fails.
 */
function leavesOut(state: CheckedState['state'], { verdict, cause }: TrialRecord): string {
  if (state === 'solved' || verdict !== 'void' || cause?.kind !== 'grading') return '';
  return ', so what is not done has no verdict: let the tests write a reward of 0 for it';
}

function notesOf({ events = [] }: TrialRecord): string[] {
  return events.flatMap((event) => (event.kind === 'note' ? [event.text] : []));
}

/** The commands of the solution that failed. Undefined if none did, as in the untouched state. */
function failedCommands({ trajectory = [] }: TrialRecord): string | undefined {
  const failed = trajectory.filter(({ exitCode = 0 }) => exitCode !== 0);
  const texts = failed.map(
    ({ command, exitCode, output = '' }) => `${command}: exit code ${exitCode}\n${output}`,
  );
  return texts.length === 0 ? undefined : texts.join('\n');
}

/** The names of the checks whose results differ. */
function differing(results: readonly TrialRecord[]): string[] {
  const outcomes = new Map<string, Set<boolean>>();
  const add = (name: string, passed: boolean) =>
    outcomes.set(name, (outcomes.get(name) ?? new Set<boolean>()).add(passed));
  for (const { verifySteps = [], validations = [] } of results) {
    for (const [index, { command, exitCode }] of verifySteps.entries())
      add(`verify ${index + 1}: ${command}`, exitCode === 0);
    for (const { name, exitCode } of validations) add(name, exitCode === 0);
  }
  return [...outcomes].filter(([, seen]) => seen.size > 1).map(([name]) => name);
}

/**
 * The most useful output of a grading that did not pass, in whole lines: the output of what failed before the
 * checks, or else the message and output of each check that failed. Undefined if nothing was printed.
 */
function printedBy(result: TrialRecord): string | undefined {
  const { cause, validations = [], verifySteps = [], judgments = [] } = result;
  const steps = verifySteps.filter(({ exitCode }) => exitCode !== 0).map(({ output }) => output);
  const logsOf = ({ logs = [] }: (typeof validations)[number]) =>
    logs.map(({ value }) => value?.text?.trimEnd() ?? '').join('\n');
  const failed = validations.filter(({ exitCode = 0 }) => exitCode !== 0);
  const said = failed.map((one) => joined([named(one.name, one.message), logsOf(one)]));
  const judged = judgments
    .filter((judgment) => !reachesThreshold(judgment))
    .map(({ name, reason }) => named(name, reason));
  const before = joined([cause?.output]);
  return before ?? joined([...steps, ...said, ...judged]) ?? joined(validations.map(logsOf));
}

/** Why a grading did not pass, in one line; undefined if it passed. */
function reasonOf(result: TrialRecord): string | undefined {
  return result.cause?.message ?? failuresOf(result)[0];
}

function named(name: string, said: string | undefined): string | undefined {
  return said?.trim() ? `${name}: ${said}` : undefined;
}

/** The texts that say something, each with its own lines; undefined if none does. */
function joined(texts: readonly (string | undefined)[]): string | undefined {
  const nonEmpty = texts.flatMap((text) => (text?.trim() ? [text.trimEnd()] : []));
  return nonEmpty.length === 0 ? undefined : nonEmpty.join('\n');
}
