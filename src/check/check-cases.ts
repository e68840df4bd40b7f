import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pLimit from 'p-limit';
import type { Clock } from '../base/clock.ts';
import { type Deadline, startDeadline } from '../base/deadline.ts';
import type { Judgment } from '../contract/validation.ts';
import { type Spent, spentFrom } from '../gateway/budget.ts';
import { BlobStore } from '../ledger/blobs.ts';
import type { PhaseName } from '../record/cause.ts';
import { failuresOf, reachesThreshold, scoreText } from '../record/failures.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { unscriptedModels, unscriptedText } from '../record/usage.ts';
import { namesOfChecks } from '../suite/load-tests.ts';
import type { SuitePlan } from '../suite/plan.ts';
import { duration } from '../text/quantities.ts';
import type { TrialParts } from '../trial/phase.ts';
import { wholeSearch } from '../trial/prepare/visible-answers.ts';
import { mappedImages } from '../trial/record.ts';
import { runTrial } from '../trial/run-trial.ts';
import { type CheckedCase, type CheckedState, type StateToCheck, statesOf } from './checked-state.ts';
import type { KeptChecks } from './kept-checks.ts';

/** What happens to a grading, in the words of a display. */
type GradingEvent =
  | { kind: 'planned'; trials: number; spent: (() => Spent) | undefined }
  | { kind: 'phase'; trial: GradedState; phase: PhaseName }
  | { kind: 'finished'; trial: GradedState; verdict: CheckedState['verdicts'][number]; ms: number };

interface GradedState {
  key: string;
  case: string;
  which: string;
}

export interface CheckOptions {
  repeat: number;
  /** What earlier checks found. Without it, everything is graded, and nothing is kept. */
  kept?: KeptChecks | undefined;
  concurrency: number;
  /** How long all gradings of a case may take together, in milliseconds. Default: no limit. */
  caseTimeoutMs?: number | undefined;
  signal: AbortSignal;
  /** Called when the first grading of a state begins. */
  onBegin(id: string, state: CheckedState['state']): void;
  /** Called when a state has its result. */
  onState(id: string, checked: CheckedState): void;
  /** Called after each case. */
  onCase(checked: CheckedCase): void;
  /** Called when gradings begin, change their phase, and end. The verdict `passed` means "as expected". */
  observe(event: GradingEvent): void;
}

/**
 * Grades every case twice: after prepare, which must fail, and after its reference solution, which must pass.
 * No harness runs and no agent's model is called; validators may call their judges. Uses the profile and the
 * sandbox of the first variant.
 */
export async function checkCases(
  plan: SuitePlan,
  parts: Omit<TrialParts, 'blobs'>,
  options: CheckOptions,
): Promise<CheckedCase[]> {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-check-'));
  const limit = pLimit(options.concurrency);
  const checking: Parts = { ...parts, blobs: new BlobStore(folder), limit };
  const { kept, repeat, signal } = options;
  const cases = await Promise.all(
    plan.cases.map(async (planned) => ({
      id: planned.request.id,
      mapped: mappedImages(planned.local.environment),
      states: await Promise.all(statesOf(plan, planned).map((state) => foundBefore(state, kept, repeat))),
    })),
  );
  const open = cases.flatMap(({ states }) => states.filter(({ found }) => !found));
  const { batch } = parts.budgets;
  options.observe({
    kind: 'planned',
    trials: open.length * repeat,
    spent: batch && (() => spentFrom(batch)),
  });
  try {
    return await Promise.all(
      cases.map(async ({ id, mapped, states }) => {
        using time = caseTime(parts.clock, options.caseTimeoutMs ?? Number.POSITIVE_INFINITY, signal);
        const checked = {
          id,
          states: await Promise.all(
            states.map(async (one) => {
              const state = await outcomeOf(one, checking, options, time);
              options.onState(id, state);
              return state;
            }),
          ),
          ...(mapped.length > 0 && { mappedImages: mapped }),
        };
        options.onCase(checked);
        return checked;
      }),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

type CheckNames = NonNullable<ReturnType<typeof namesOfChecks>>;

type Parts = TrialParts & { limit: ReturnType<typeof pLimit> };

interface StateAndResult extends StateToCheck {
  key: string | undefined;
  /** What an earlier check found. */
  found: CheckedState | undefined;
}

async function foundBefore(
  state: StateToCheck,
  kept: KeptChecks | undefined,
  repeat: number,
): Promise<StateAndResult> {
  if (!kept) return { ...state, key: undefined, found: undefined };
  const key = await kept.keyOf(state, repeat);
  return { ...state, key, found: kept.find(key) };
}

async function outcomeOf(
  state: StateAndResult,
  parts: Parts,
  options: CheckOptions,
  time: CaseTime,
): Promise<CheckedState> {
  const checked = state.found ?? (await checkState(state, parts, options, time));
  if (state.key !== undefined && !state.found) options.kept?.keep(state.key, checked);
  options.kept?.keepLast(state, checked);
  return checked;
}

async function checkState(
  { id, state, spec }: StateToCheck,
  parts: Parts,
  { repeat, signal, observe, onBegin }: CheckOptions,
  time: CaseTime,
): Promise<CheckedState> {
  const check = async (ordinal: number): Promise<Grading> => {
    const trial = { key: JSON.stringify([id, state, ordinal]), case: id, which: `${state} #${ordinal}` };
    let phase: PhaseName | undefined;
    try {
      const limited = time.begin();
      onBegin(id, state);
      const result = await runTrial({ ...spec, ordinal }, parts, limited, (begun) => {
        phase = begun;
        observe({ kind: 'phase', trial, phase });
      });
      const { verdict, startedAt, finishedAt } = result;
      const shown = isExpected(state, result) ? 'passed' : verdict === 'void' ? 'void' : 'failed';
      observe({ kind: 'finished', trial, verdict: shown, ms: finishedAt - startedAt });
      return { kind: 'graded', result };
    } catch (error) {
      signal.throwIfAborted();
      if (!time.isOver()) throw error;
      observe({ kind: 'finished', trial, verdict: 'void', ms: 0 });
      return { kind: 'stopped', phase, limitMs: time.limitMs };
    }
  };
  const gradings = await Promise.all(
    Array.from({ length: repeat }, (_, ordinal) => parts.limit(() => check(ordinal))),
  );
  return stateOf(state, gradings, spec.validator && namesOfChecks(spec.validator));
}

/**
 * The time that the gradings of a case may take together. It begins with the first of them, so a case does
 * not pay for others that are graded before it.
 */
function caseTime(clock: Clock, limitMs: number, parent: AbortSignal) {
  let deadline: Deadline | undefined;
  return {
    /** Milliseconds; infinite if there is no limit. */
    limitMs,
    /** Whether the time was used up. */
    isOver: () => deadline?.expired() ?? false,
    /** Begins a grading. The returned signal aborts when the time is used up. Throws if it already is. */
    begin(): AbortSignal {
      if (limitMs !== Number.POSITIVE_INFINITY) deadline ??= startDeadline(clock, limitMs, parent);
      const signal = deadline?.signal ?? parent;
      signal.throwIfAborted();
      return signal;
    },
    [Symbol.dispose]: () => deadline?.[Symbol.dispose](),
  };
}
type CaseTime = ReturnType<typeof caseTime>;

/** How one grading of a state ended. */
type Grading =
  | { kind: 'graded'; result: TrialRecord }
  /** The case's time was used up in this phase; undefined if the grading had not begun. */
  | { kind: 'stopped'; phase: PhaseName | undefined; limitMs: number };

/** What the gradings of a state say together. */
function stateOf(
  state: CheckedState['state'],
  gradings: readonly Grading[],
  names: CheckNames | undefined,
): CheckedState {
  const results = gradings.flatMap((one) => (one.kind === 'graded' ? [one.result] : []));
  const stopped = gradings.flatMap((one) => (one.kind === 'stopped' ? [one] : []));
  const verdicts = gradings.map((one) => (one.kind === 'graded' ? one.result.verdict : 'void'));
  const cause = results.find((result) => result.cause)?.cause;
  const wrong = results.find((result) => !isExpected(state, result));
  const shown = wrong ?? results.find(({ verdict }) => verdict !== 'passed');
  const flaky = differing(results);
  // The rewards of tests are shown with the tests.
  const judgments = (results[0]?.judgments ?? []).filter(({ evaluator }) => evaluator !== 'tests');
  const passing =
    state === 'untouched' ? results.slice(0, 1).flatMap((one) => passingAlready(one, names)) : [];
  // A judge's script often means its `otherwise` for what is not done.
  const lost = state === 'solved' ? results.flatMap(unscriptedModels).map(unscriptedText) : [];
  const notes = [...new Set([...results.flatMap(notesOf), ...lost, ...passing])];
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
function isExpected(state: CheckedState['state'], result: TrialRecord): boolean {
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

function notesOf({ events = [], sandboxLacks = [] }: TrialRecord): string[] {
  return [
    ...events.flatMap((event) => (event.kind === 'note' ? [event.text] : [])),
    ...sandboxLacks.filter((lack) => lack.startsWith(wholeSearch)).map((lack) => `without ${lack}`),
  ];
}

/**
 * What passes before any work, beside what fails: by itself, it would not tell work from none. The case is
 * sound all the same, as with tests of what must stay as it is.
 */
function passingAlready(
  { verdict, verifySteps, validations = [], judgments = [] }: TrialRecord,
  names: CheckNames = { checks: [], judges: [] },
): string[] {
  const tests = judgments.filter(({ evaluator }) => evaluator === 'tests');
  const checks =
    names.judges.length === 0 ? [] : validations.filter(({ name }) => names.checks.includes(name));
  const passing = [
    ...(checks.length > 0 && checks.every(({ exitCode }) => exitCode === 0) ? ['checks pass'] : []),
    ...(tests.length > 0 && tests.every(reachesThreshold) ? ['tests pass'] : []),
    ...(verifySteps?.length && verifySteps.every(({ exitCode }) => exitCode === 0) ? ['verify passes'] : []),
  ];
  if (verdict !== 'failed') return [];
  return passing.map((name) => `its ${name} untouched: only what is graded beside shows that work was done`);
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
