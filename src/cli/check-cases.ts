import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { ownTrialSpec } from '../agent/trial-spec.ts';
import { spentFrom } from '../gateway/budget.ts';
import { BlobStore } from '../ledger/blobs.ts';
import { failuresOf } from '../record/failures.ts';
import type { PhaseName, TrialResult } from '../record/trial-record.ts';
import type { CaseSteps } from '../suite/case-steps.ts';
import type { CaseOracle } from '../suite/case-tests.ts';
import type { PlannedCase, Profile, SuitePlan } from '../suite/plan.ts';
import { mappedImages } from '../trial/mapped-images.ts';
import { runTrial } from '../trial/run-trial.ts';
import type { TrialSpec } from '../trial/spec.ts';
import type { TrialParts } from '../trial/trial-parts.ts';
import type { ActivityEvent } from './output/activity.ts';
import { shellWord } from './show/words.ts';

/** The result of grading a case in one state of its workspace. */
export interface CheckedState {
  state: 'untouched' | 'solved';
  /** One verdict for each repetition. */
  verdicts: TrialResult['verdict'][];
  /** Verify steps and validations whose result differed between repetitions. */
  flaky: string[];
  /** The first cause of a void verdict, or the first check that failed. */
  cause: string | undefined;
  /** What the first void or unexpected grading printed. */
  output: string | undefined;
  causeKind: NonNullable<TrialResult['cause']>['kind'] | undefined;
  asExpected: boolean;
}

export interface CheckedCase {
  id: string;
  states: CheckedState[];
  /** The images that the configuration uses in place of those that the case names. */
  mappedImages?: TrialResult['mappedImages'];
}

export interface CheckOptions {
  repeat: number;
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
  const states = plan.cases.reduce((sum, { local }) => sum + (isSolvable(local) ? 2 : 1), 0);
  const { batch } = parts.budgets;
  options.observe({
    kind: 'planned',
    trials: states * options.repeat,
    spent: batch && (() => spentFrom(batch)),
  });
  try {
    return await Promise.all(
      plan.cases.map(async (planned) => {
        const checked = await checkCase(plan, planned, checking, options);
        options.onCase(checked);
        return checked;
      }),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

type Parts = TrialParts & { limit: ReturnType<typeof pLimit> };

async function checkCase(
  plan: SuitePlan,
  planned: PlannedCase,
  parts: Parts,
  options: CheckOptions,
): Promise<CheckedCase> {
  const { id } = planned.request;
  const spec = isSolvable(planned.local) ? solvedSpec(plan, planned) : undefined;
  const states = [
    checkState({ id, state: 'untouched' }, specFor(plan, planned, ':'), parts, options),
    ...(spec ? [checkState({ id, state: 'solved' }, spec, parts, options)] : []),
  ];
  const { environment } = planned.local;
  const mapped = mappedImages(environment);
  return { id, states: await Promise.all(states), ...(mapped.length > 0 && { mappedImages: mapped }) };
}

/**
 * A trial of the command harness with this script, in the image in which the first variant's trials start.
 */
function specFor(plan: SuitePlan, planned: PlannedCase, script: string): TrialSpec {
  const [variant] = plan.variants;
  if (!variant) throw new Error('a suite has at least one variant');
  const { request } = planned;
  const spec = ownTrialSpec(
    {
      record: {
        id: 'check',
        setup: {
          prompt: plan.suite.prompt.kind === 'text' ? plan.suite.prompt.text : '',
          prepare: request.prepare?.source,
          verify: request.verify,
          validator: request.validator?.source,
          validatorFiles: request.validator?.sourceFiles,
        },
      },
      taskIndex: 0,
      case: planned,
      variant,
      prompt: plan.suite.prompt.kind === 'text' ? plan.suite.prompt.text : '',
      batchId: 'check',
      judges: plan.judges,
    },
    0,
  );
  return {
    ...spec,
    harness: 'command',
    model: 'none',
    modelConfig: undefined,
    user: undefined,
    profile: { ...spec.profile, run: script },
  };
}

function isSolvable({ solution, oracle, steps }: PlannedCase['local']): boolean {
  if (steps) return steps.list.every((step) => step.oracle !== undefined);
  return solution !== undefined || oracle !== undefined;
}

/** The trial that solves a case, which is solvable. */
function solvedSpec(plan: SuitePlan, planned: PlannedCase): TrialSpec {
  const { solution = ':', oracle, steps } = planned.local;
  const spec = specFor(plan, planned, solution);
  if (steps) return withStepOracles(spec, steps);
  return oracle ? withOracle(spec, oracle) : spec;
}

/** Each step gets the files of its own oracle, and none of an earlier one. */
function withStepOracles(spec: TrialSpec, { list }: CaseSteps): TrialSpec {
  const steps = spec.steps?.list.map((step, index) => {
    const oracle = list[index]?.oracle;
    if (!oracle) return step;
    const folders = oracle.files.map(({ path }) => `/${path.split('/')[1]}`);
    return {
      ...step,
      emptied: [...new Set([...step.emptied, ...folders])],
      files: [...step.files, ...oracle.files],
      profile: oracleProfile(spec, oracle),
    };
  });
  return { ...spec, ...(spec.steps && steps && { steps: { ...spec.steps, list: steps } }) };
}

function oracleProfile({ profile }: TrialSpec, { command, env }: CaseOracle): Profile {
  return { ...profile, run: command.map(shellWord).join(' '), env: { ...profile.env, ...env } };
}

/** The trial with the author's own way to solve the case as its harness. Only this trial gets its files. */
function withOracle(spec: TrialSpec, oracle: CaseOracle): TrialSpec {
  const { environment } = spec;
  return {
    ...spec,
    environment: { ...environment, files: [...(environment.files ?? []), ...oracle.files] },
    profile: oracleProfile(spec, oracle),
  };
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
  const flaky = differing(results);
  return {
    state,
    verdicts,
    flaky,
    cause: cause?.message ?? (wrong && failuresOf(wrong)[0]),
    output: wrong && printedBy(wrong),
    causeKind: cause?.kind,
    asExpected: flaky.length === 0 && results.every(isExpected),
  };
}

/** Whether nothing was solved. Tests of a task may need the work to give any reward. */
function isUnsolved({ verdict, cause }: TrialResult, { tests, steps }: TrialSpec): boolean {
  const hasNoReward =
    (tests ?? steps) !== undefined && cause?.kind === 'grading' && cause.phase === 'validate';
  return verdict === 'failed' || (verdict === 'void' && hasNoReward);
}

/** What says most about a grading: what was printed by the tests, or by what failed before them. */
function printedBy({ cause, validations = [], verifySteps = [] }: TrialResult): string | undefined {
  const logs = validations.flatMap(({ logs = [] }) => logs.map(({ value }) => value?.text ?? ''));
  const steps = verifySteps.filter(({ exitCode }) => exitCode !== 0).map(({ output }) => output);
  return [cause?.output, ...steps, ...logs].find((text) => text !== undefined && text.trim() !== '');
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
