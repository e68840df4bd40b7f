import { firstThrown, OffsiteError } from '../base/offsite-error.ts';
import { sumOfUsage } from '../contract/record.ts';
import type { Judgment } from '../contract/validation.ts';
import type { StepResult } from '../record/trial-record.ts';
import { verdictOf } from '../validate/verify.ts';
import { trajectoryArtifact, trajectoryPath } from './artifacts.ts';
import { agentUsers } from './as-user.ts';
import { grade, type RunPhase } from './grading.ts';
import { GradingSandboxes } from './grading-sandboxes.ts';
import { beginStep, reachSteps } from './phases/begin-step.ts';
import { harness } from './phases/harness.ts';
import type { CurrentStep, Found, PhaseInput } from './phases/phase.ts';
import { wholeSolution } from './solution.ts';
import type { TrialSpec, TrialStep, TrialSteps } from './spec.ts';
import { judgmentsOf } from './tests/grade.ts';
import { putTests } from './tests/put-tests.ts';

interface StepsRun {
  /** Runs a phase of a step, announced and timed. The step has no name if the trial has no steps. */
  runPhase(step: string | undefined, ...args: Parameters<RunPhase>): ReturnType<RunPhase>;
  /** Called with all that was found so far, each time something is added. */
  keep(found: Found): void;
}

/**
 * Runs the harness in a sandbox and grades what it left, for each step of a trial. A trial without steps is
 * one step. All steps share the sandbox and the trial's budget; each has a new session of its harness. After
 * a step that did not pass, no other step runs.
 */
export async function runSteps(
  input: Omit<PhaseInput, 'whole' | 'step' | 'users'>,
  { runPhase, keep }: StepsRun,
): Promise<void> {
  const { spec: trial, found: base, container, parts, services, signal } = input;
  const { clock, blobs } = parts;
  const users = await agentUsers(container, trial, signal);
  const steps: (TrialStep | undefined)[] = trial.steps?.list ?? [undefined];
  const ran: RanStep[] = [];
  for (const [index, step] of steps.entries()) {
    const spec = step ? stepSpec(trial, step) : trial;
    const isLast = index === steps.length - 1;
    const at = { users, spec, signal };
    /** How an untouched sandbox is brought to where these steps have begun. */
    const reaching = (steps: readonly TrialStep[]): Pick<CurrentStep, 'reach' | 'solve'> => ({
      reach: (fresh) => reachSteps(steps, fresh, at),
      solve: steps.some(({ solution }) => !solution)
        ? undefined
        : (fresh, run) =>
            reachSteps(steps, fresh, at, async (one) => {
              if (one.solution) await run(one.solution, stepSpec(trial, one));
            }),
    });
    const until = trial.steps?.list.slice(0, index + 1) ?? [];
    const reached = { ...reaching(until), ...(!step && { solve: wholeSolution(trial) }) };
    // Every step is graded in the image of the trial.
    const whole = step ? withTestsOf(trial, step) : trial;
    using own = step?.tests.fresh && new GradingSandboxes({ spec: whole, parts, signal, services });
    own?.start();
    const sandboxes = own ?? input.sandboxes;
    const stepInput = { ...input, spec, whole, users, sandboxes, step: { index, isLast, ...reached } };
    const run: RunPhase = (phase, given) => runPhase(step?.name, phase, given);
    const here: RanStep = { step, startedAt: clock.now(), finishedAt: clock.now(), found: {} };
    ran.push(here);
    const add = (found: Found) => {
      here.found = { ...here.found, ...found };
      here.finishedAt = clock.now();
      keep({ ...base, ...combinedSteps(trial, ran) });
    };
    const before = { ...stepInput, step: { index, isLast, ...reaching(until.slice(0, -1)) } };
    if (step) add(await run(beginStep(step, index === 0), before));
    const damage = await damageDone(async () => add(await run(harness, stepInput)));
    add(await grade({ ...stepInput, found: { ...base, ...here.found } }, run, damage));
    if (here.found.verdict !== 'passed') break;
    // The next step's agent never sees the tests, nor what they wrote.
    if (step && !step.tests.fresh && !isLast) await putTests(container, { ...step.tests, files: [] }, signal);
  }
  if (!trial.steps) return;
  const { artifacts = [], trajectory = [], ...found } = combinedSteps(trial, ran);
  const all = [...artifacts, await trajectoryArtifact(trajectory, blobs)];
  keep({ ...base, ...found, trajectory, artifacts: all });
}

/**
 * Why nothing can run in the sandbox any more after this, if that is so. Grading shows whose fault it is.
 */
async function damageDone(work: () => Promise<void>): Promise<OffsiteError | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    const thrown = firstThrown(error);
    if (thrown instanceof OffsiteError && thrown.code === 'ENGINE_CONTAINER_DAMAGED') return thrown;
    throw error;
  }
}

function withTestsOf(
  trial: TrialSpec,
  { tests, testsIn, testsHosts }: Pick<TrialStep, 'tests' | 'testsIn' | 'testsHosts'>,
): TrialSpec {
  return { ...trial, tests, testsIn, testsHosts };
}

/** The trial as one of its steps has it. */
function stepSpec(
  { steps: _, ...spec }: TrialSpec,
  { agent, timeoutMs, profile = spec.profile, reach, ...step }: TrialStep,
): TrialSpec {
  const { prompt, variables, artifacts, artifactsExcept } = step;
  const { sandbox } = spec;
  const harness = timeoutMs ?? sandbox.timeouts.harness;
  return {
    ...withTestsOf(spec, step),
    prompt,
    variables,
    artifacts,
    artifactsExcept,
    profile,
    agent,
    sandbox: { ...sandbox, ...reach, timeouts: { ...sandbox.timeouts, harness } },
  };
}

/** A step that has begun, and what it found so far. */
interface RanStep {
  /** Undefined if the trial has no steps. */
  step: TrialStep | undefined;
  /** Epoch milliseconds. */
  startedAt: number;
  finishedAt: number;
  found: Found;
}

/**
 * What the steps of a trial found together. Facts about the sandbox as a whole, such as changed files, are as
 * the last step left them.
 */
function combinedSteps({ steps }: TrialSpec, ran: readonly RanStep[]): Found {
  const last = ran.at(-1)?.found ?? {};
  if (!steps) return last;
  const named = ran.flatMap(({ step, ...rest }) => (step ? [{ name: step.name, ...rest }] : []));
  const all = <Key extends 'trajectory' | 'events' | 'artifactsOmitted' | 'testsConnections'>(key: Key) =>
    named.flatMap(({ found }) => (found[key] ?? []) as NonNullable<Found[Key]>[number][]);
  const judgments = [
    ...caseJudgments(steps, named),
    ...named.flatMap(({ name, found }) =>
      (found.judgments ?? []).map((judgment) => ({ ...judgment, name: `${name}: ${judgment.name}` })),
    ),
  ];
  const validations = named
    .flatMap(({ name, found }) =>
      (found.validations ?? []).map((one) => ({ ...one, name: `${name}: ${one.name}` })),
    )
    .map((one, index) => ({ ...one, id: `validation-${index}`, index }));
  const cause = named.findLast(({ found }) => found.cause);
  const counts = named.map(({ found }) => found.harnessCounts ?? {});
  const usage = counts.map(({ usage }) => usage);
  const commands = counts.map(({ commands }) => commands);
  const deviations = new Set(named.flatMap(({ found }) => found.deviations ?? []));
  const isComplete = ran.length === steps.list.length;
  const failed = named.find(({ found }) => found.verdict !== 'passed');
  const verdict = failed
    ? failed.found.verdict
    : isComplete
      ? verdictOf({ verifySteps: [], validations, judgments })
      : undefined;
  return {
    ...last,
    verdict,
    ...(cause?.found.cause && {
      cause: { ...cause.found.cause, message: `step ${cause.name}: ${cause.found.cause.message}` },
    }),
    steps: stepResults(steps, named),
    trajectory: all('trajectory'),
    events: all('events'),
    ...(deviations.size > 0 && { deviations: [...deviations] }),
    commandsCut: named.some(({ found }) => found.commandsCut) || undefined,
    turns: named.reduce((sum, { found }) => sum + (found.turns ?? 0), 0),
    harnessCounts: {
      usage: usage.every((one) => one !== undefined) ? sumOfUsage(usage) : undefined,
      commands: commands.every((one) => one !== undefined)
        ? commands.reduce((sum, one) => sum + one, 0)
        : undefined,
    },
    validations,
    judgments,
    artifacts: named.flatMap(({ name, found }) =>
      (found.artifacts ?? [])
        .filter(({ path }) => path !== trajectoryPath)
        .map((artifact) => ({ ...artifact, path: `steps/${name}/${artifact.path}` })),
    ),
    artifactsOmitted: all('artifactsOmitted'),
    ...(named.some(({ found }) => found.testsConnections) && { testsConnections: all('testsConnections') }),
  } as Found;
}

type NamedStep = Omit<RanStep, 'step'> & { name: string };

function stepResults({ list }: TrialSteps, ran: readonly NamedStep[]): StepResult[] {
  return list.map(({ name }, index) => {
    const here = ran[index];
    if (!here) return { name };
    const { startedAt, finishedAt, found } = here;
    const { verdict, cause, harness } = found;
    const rewards = rewardsOf(here);
    return {
      name,
      startedAt,
      finishedAt,
      ...(verdict && { verdict }),
      ...(cause && { cause }),
      ...(rewards.size > 0 && { rewards: Object.fromEntries(rewards) }),
      ...(harness && { harness }),
    };
  });
}

/** The rewards of the case, by its strategy, beside what they must reach. */
function caseJudgments({ strategy, thresholds }: TrialSteps, ran: readonly NamedStep[]): Judgment[] {
  const rewards = ran.map(rewardsOf);
  if (strategy === 'final') return judgmentsOf(rewards.at(-1) ?? new Map(), thresholds, 'the last step');
  const rewarded = rewards.filter(({ size }) => size > 0);
  const names = new Set(rewarded.flatMap((one) => [...one.keys()]));
  const means = [...names].map((name): [string, number] => {
    const sum = rewarded.reduce((total, one) => total + (one.get(name) ?? 0), 0);
    return [name, sum / rewarded.length];
  });
  return judgmentsOf(new Map(means), thresholds, 'the mean of the steps');
}

function rewardsOf({ found: { judgments = [] } }: NamedStep): ReadonlyMap<string, number> {
  return new Map(
    judgments.flatMap(({ name, score }) => (score === undefined ? [] : [[name, score] as const])),
  );
}
