import { steadyClock } from '../base/clock.ts';
import { firstThrown, OffsiteError } from '../base/offsite-error.ts';
import type { Judgment } from '../contract/validation.ts';
import type { ModelAccount } from '../gateway/gateway.ts';
import type { PhaseName } from '../record/cause.ts';
import type { StepResult, TrialRecord } from '../record/trial-record.ts';
import { agentUsage, sumIfKnown, sumOfUsage } from '../record/usage.ts';
import type { PlannedSource } from '../suite/git/git-source.ts';
import { verdictOf } from '../validate/verify.ts';
import { causeOf } from './blame.ts';
import { trajectoryArtifact, trajectoryPath } from './collect/artifacts.ts';
import { keeping } from './collect/keep-left.ts';
import { grade } from './grade/grade.ts';
import { putTests } from './grade/tests.ts';
import { judgmentsOf } from './grade/tests-grade.ts';
import {
  GradingSandboxes,
  type OpenRecord,
  PhaseTimer,
  type TrialParts,
  type TrialSandbox,
} from './phase.ts';
import { beginStep, reachSteps } from './prepare/begin-step.ts';
import { agentUsers, sandboxFacts } from './prepare/started-sandbox.ts';
import type { TrialServices } from './prepare/trial-services.ts';
import { recordOf, withServices } from './record.ts';
import { harness } from './run/harness.ts';
import { missedCause, openModels, replayOf, type TrialModels } from './run/models.ts';
import { type TrialSpec, type TrialStep, type TrialSteps, wholeSolution } from './spec.ts';

/**
 * Runs one trial from its setup to its outcome. If something goes wrong, the result says what and who caused
 * it. The promise rejects only if `signal` aborts. The sandbox is released in every case.
 */
export async function runTrial(
  spec: TrialSpec,
  given: TrialParts,
  signal: AbortSignal,
  onPhase: (phase: PhaseName) => void,
): Promise<TrialRecord> {
  const clock = steadyClock(given.clock);
  const parts = { ...given, clock };
  const { sandboxes } = parts;
  const begun = given.clock.steady?.();
  const timer = new PhaseTimer(clock, onPhase);
  let found: OpenRecord = {};
  let models: TrialModels | undefined;
  let services: TrialServices | undefined;

  await using opened = new AsyncDisposableStack();
  try {
    models = openModels(spec, parts);
    opened.use(models);
    using held = new DisposableStack();
    held.defer(() => sandboxes.forget(spec));
    sandboxes.start(spec, signal);
    const sandbox = await timer.run('sandbox', () => sandboxes.take(spec, signal));
    held.defer(() => sandboxes.giveBack(sandbox));
    services = sandbox.services;
    found = { ...sandboxFacts(sandbox), images: sandbox.images };
    const graders = held.use(new GradingSandboxes({ spec, parts, signal, services }));
    graders.start();
    const kept = keeping(parts.keep);
    const place = { ...sandbox, parts, graders, models, signal, keeping: kept };
    try {
      await runSteps(spec, place, found, {
        timer,
        onFound(grown) {
          found = grown;
        },
      });
    } finally {
      found = await withServices(found, services, parts.blobs);
    }
  } catch (error) {
    signal.throwIfAborted();
    const cause = causeOf(error, timer.current);
    // If the agent broke its sandbox, the trial is failed, not void.
    found = { ...found, verdict: cause.kind === 'agent' ? 'failed' : 'void', cause };
  }
  const account = await models?.session.account();
  const missed = missedCause(models?.session, timer.current);
  if (missed && found.cause?.kind !== 'replay') found = { ...found, verdict: 'void', cause: missed };
  const ended = given.clock.steady?.();
  return {
    ...recordOf(spec, found, { account, ...timer.times() }),
    ...(sandboxes.engineName !== undefined && { engine: sandboxes.engineName }),
    ...(spec.environment.source && { source: sourceOf(spec.environment.source) }),
    ...(begun && ended && { steady: { of: begun.of, startedAt: begun.at, finishedAt: ended.at } }),
    ...(account && { replay: replayOf(account, spec.replay) }),
    disagreements: account && disagreements(found, account),
  };
}

function sourceOf({ url, ref, commit }: PlannedSource) {
  return { url, commit, ...(ref !== undefined && { ref }) };
}

/**
 * One line for each count of the harness that differs from ours: its token counts from the gateway's, its
 * command count from the commands in its stream.
 */
function disagreements({ harnessCounts, trajectory }: Partial<TrialRecord>, account: ModelAccount): string[] {
  const { usage: counted, commands } = harnessCounts ?? {};
  const used = agentUsage(account);
  const compared = [
    { said: counted?.inputTokens, what: 'input tokens', seenBy: 'the gateway', seen: used.inputTokens },
    { said: counted?.outputTokens, what: 'output tokens', seenBy: 'the gateway', seen: used.outputTokens },
    { said: commands, what: 'commands', seenBy: 'its stream showed', seen: trajectory?.length },
  ];
  return compared.flatMap(({ said, what, seenBy, seen }) =>
    said === undefined || seen === undefined || said === seen
      ? []
      : [`the harness counted ${said} ${what}, ${seenBy} ${seen}`],
  );
}

interface StepsRun {
  timer: PhaseTimer;
  /** Called with all that was found so far, each time something is added. */
  onFound(found: OpenRecord): void;
}

/**
 * Runs the harness in a sandbox and grades what it left, for each step of a trial. A trial without steps is
 * one step. All steps share the sandbox and the trial's budget; each has a new session of its harness. After
 * a step that did not pass, no other step runs.
 */
async function runSteps(
  trial: TrialSpec,
  place: Omit<TrialSandbox, 'users' | 'whole' | 'step' | 'isLastStep' | 'reach' | 'solve'>,
  base: OpenRecord,
  { timer, onFound }: StepsRun,
): Promise<void> {
  const { container, parts, services, signal } = place;
  const { clock, blobs } = parts;
  const users = await agentUsers(container, trial, signal);
  const steps: (TrialStep | undefined)[] = trial.steps?.list ?? [undefined];
  const ran: RanStep[] = [];
  for (const [index, step] of steps.entries()) {
    const spec = step ? stepSpec(trial, step) : trial;
    const isLast = index === steps.length - 1;
    const at = { users, signal };
    /** How an untouched sandbox is brought to where these steps have begun. */
    const reaching = (steps: readonly TrialStep[]): Pick<TrialSandbox, 'reach' | 'solve'> => ({
      reach: (fresh) => reachSteps(steps, fresh, spec, at),
      solve: steps.some(({ solution }) => !solution)
        ? undefined
        : (fresh, run) =>
            reachSteps(steps, fresh, spec, at, async (one) => {
              if (one.solution) await run(one.solution, stepSpec(trial, one));
            }),
    });
    const until = trial.steps?.list.slice(0, index + 1) ?? [];
    const reached = { ...reaching(until), ...(!step && { solve: wholeSolution(trial) }) };
    // Every step is graded in the image of the trial.
    const whole = step ? withTestsOf(trial, step) : trial;
    using own = step?.tests.fresh && new GradingSandboxes({ spec: whole, parts, signal, services });
    own?.start();
    const graders = own ?? place.graders;
    const sandbox = { ...place, users, graders, whole, step: index, isLastStep: isLast, ...reached };
    const run = timer.phasesOf(step?.name);
    const here: RanStep = { step, startedAt: clock.now(), finishedAt: clock.now(), found: {} };
    ran.push(here);
    const add = (found: OpenRecord) => {
      here.found = { ...here.found, ...found };
      here.finishedAt = clock.now();
      onFound({ ...base, ...combinedSteps(trial, ran) });
    };
    const before = { ...sandbox, ...reaching(until.slice(0, -1)) };
    if (step) add(await run(beginStep(step), spec, before, {}));
    const damage = await damageDone(async () => add(await run(harness, spec, sandbox, {})));
    add(await grade(spec, sandbox, { ...base, ...here.found }, run, damage));
    if (here.found.verdict !== 'passed') break;
    // The next step's agent never sees the tests, nor what they wrote.
    if (step && !step.tests.fresh && !isLast) await putTests(container, { ...step.tests, files: [] }, signal);
  }
  if (!trial.steps) return;
  const { artifacts = [], trajectory = [], ...found } = combinedSteps(trial, ran);
  const all = [...artifacts, await trajectoryArtifact(trajectory, blobs)];
  onFound({ ...base, ...found, trajectory, artifacts: all });
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
  found: OpenRecord;
}

/**
 * What the steps of a trial found together. Facts about the sandbox as a whole, such as changed files, are as
 * the last step left them.
 */
function combinedSteps({ steps }: TrialSpec, ran: readonly RanStep[]): OpenRecord {
  const last = ran.at(-1)?.found ?? {};
  if (!steps) return last;
  const named = ran.flatMap(({ step, ...rest }) => (step ? [{ name: step.name, ...rest }] : []));
  const all = <Key extends 'trajectory' | 'events' | 'artifactsOmitted' | 'testsConnections'>(key: Key) =>
    named.flatMap(({ found }) => (found[key] ?? []) as NonNullable<OpenRecord[Key]>[number][]);
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
  const usage = counts.flatMap((count) => count.usage ?? []);
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
      usage: usage.length === counts.length ? sumOfUsage(usage) : undefined,
      commands: sumIfKnown(counts.map((count) => count.commands)),
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
  } as OpenRecord;
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
