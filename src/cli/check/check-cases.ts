import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pLimit from 'p-limit';
import type { Judgment } from '../../contract/validation.ts';
import { spentFrom } from '../../gateway/budget.ts';
import { BlobStore } from '../../ledger/blobs.ts';
import type { PhaseName } from '../../record/cause.ts';
import { reachesThreshold, scoreText } from '../../record/failures.ts';
import type { TrialResult } from '../../record/trial-record.ts';
import type { SuitePlan } from '../../suite/plan.ts';
import { mappedImages } from '../../trial/image/mapped-images.ts';
import { runTrial } from '../../trial/run-trial.ts';
import type { TrialSpec } from '../../trial/spec.ts';
import type { TrialParts } from '../../trial/trial-parts.ts';
import type { ActivityEvent } from '../output/activity.ts';
import { type StateToCheck, statesOf } from './check-spec.ts';
import type { CheckedCase, CheckedState } from './checked-state.ts';
import type { KeptChecks } from './kept-checks.ts';
import { printedBy, reasonOf } from './printed-by.ts';

export interface CheckOptions {
  repeat: number;
  /** What earlier checks found. Without it, everything is graded, and nothing is kept. */
  kept?: KeptChecks | undefined;
  concurrency: number;
  signal: AbortSignal;
  /** Called after each case. */
  onCase(checked: CheckedCase): void;
  /** Called when gradings begin, change their phase, and end. One that ends as expected has passed. */
  observe(event: ActivityEvent): void;
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
  const { kept, repeat } = options;
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
        const checked = {
          id,
          states: await Promise.all(states.map((one) => outcomeOf(one, checking, options))),
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

async function outcomeOf(state: StateAndResult, parts: Parts, options: CheckOptions): Promise<CheckedState> {
  if (state.found) return state.found;
  const checked = await checkState(state, state.spec, parts, options);
  if (state.key !== undefined) options.kept?.keep(state.key, checked);
  return checked;
}

async function checkState(
  { id, state }: { id: string; state: CheckedState['state'] },
  spec: TrialSpec,
  parts: Parts,
  { repeat, signal, observe }: CheckOptions,
): Promise<CheckedState> {
  const isExpected = (result: TrialResult) =>
    state === 'solved' ? result.verdict === 'passed' : isUnsolved(result, spec);
  const check = async (ordinal: number) => {
    const trial = { key: JSON.stringify([id, state, ordinal]), case: id, which: `${state} #${ordinal}` };
    const onPhase = (phase: PhaseName) => observe({ kind: 'phase', trial, phase });
    const result = await runTrial({ ...spec, ordinal }, parts, signal, onPhase);
    const { verdict, startedAt, finishedAt } = result;
    const shown = isExpected(result) ? 'passed' : verdict === 'void' ? 'void' : 'failed';
    observe({ kind: 'finished', trial, verdict: shown, ms: finishedAt - startedAt });
    return result;
  };
  const results = await Promise.all(
    Array.from({ length: repeat }, (_, ordinal) => parts.limit(() => check(ordinal))),
  );
  const verdicts = results.map(({ verdict }) => verdict);
  const cause = results.find((result) => result.cause)?.cause;
  const wrong = results.find((result) => !isExpected(result));
  const told = wrong ?? results.find(({ verdict }) => verdict !== 'passed');
  const flaky = differing(results);
  // The rewards of tests are told with the tests.
  const judgments = (results[0]?.judgments ?? []).filter(({ evaluator }) => evaluator !== 'tests');
  const notes = [...new Set(results.flatMap(notesOf))];
  return {
    state,
    verdicts,
    flaky,
    cause: cause?.message ?? (told && reasonOf(told)),
    output: told && printedBy(told),
    solution: wrong && failedCommands(wrong),
    causeKind: cause?.kind,
    ...(notes.length > 0 && { notes }),
    ...(judgments.length > 0 && { judgments: judgments.map(shownJudgment) }),
    asExpected: flaky.length === 0 && results.every(isExpected),
  };
}

function shownJudgment(judgment: Judgment): NonNullable<CheckedState['judgments']>[number] {
  const { name, threshold } = judgment;
  const reaches = threshold === undefined ? {} : { reaches: reachesThreshold(judgment) };
  return { name, score: scoreText(judgment), ...reaches };
}

/** Whether nothing was solved. Tests of a task may need the work to give any reward. */
function isUnsolved({ verdict, cause, verifySteps }: TrialResult, { tests, steps }: TrialSpec): boolean {
  // It fails whatever an agent does.
  if (verifySteps?.some(({ unreadable }) => unreadable)) return false;
  const hasNoReward =
    (tests ?? steps) !== undefined && cause?.kind === 'grading' && cause.phase === 'validate';
  return verdict === 'failed' || (verdict === 'void' && hasNoReward);
}

function notesOf({ events = [] }: TrialResult): string[] {
  return events.flatMap((event) => (event.kind === 'note' ? [event.text] : []));
}

/** Undefined if no command failed. That of the untouched state does nothing. */
function failedCommands({ trajectory = [] }: TrialResult): string | undefined {
  const failed = trajectory.filter(({ exitCode = 0 }) => exitCode !== 0);
  const told = failed.map(
    ({ command, exitCode, output = '' }) => `${command}: exit code ${exitCode}\n${output}`,
  );
  return told.length === 0 ? undefined : told.join('\n');
}

/** The names of the checks whose results differ. */
function differing(results: readonly TrialResult[]): string[] {
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
