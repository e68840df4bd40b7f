import { OffsiteError } from '../../base/offsite-error.ts';
import type { Cause, PhaseName } from '../../record/cause.ts';
import type { AskModel } from '../../validate/judge/judge.ts';
import { answerAboutNothing, type JudgeAnswer } from '../../validate/model-calls.ts';
import { runVerify, type VerifyRequest } from '../../validate/verify.ts';
import { type Blamed, type Fault, settle } from '../blame.ts';
import { collect } from '../collect/collect.ts';
import { needsWholeSandbox } from '../collect/keep-left.ts';
import { shownPaths, systemChanges } from '../collect/system-changes.ts';
import { causeOf } from '../failure.ts';
import {
  type CurrentStep,
  type Found,
  FreshSandbox,
  GradingSandboxes,
  type Phase,
  type PhaseInput,
} from '../phase.ts';
import type { StartedSandbox } from '../prepare/started-sandbox.ts';
import { agentWhoLeft } from '../run/ending-cause.ts';
import { harness } from '../run/harness.ts';
import { openModels, type TrialModels } from '../run/models.ts';
import type { TrialSolution } from '../spec.ts';
import { solvedBy } from './solution.ts';
import { validate } from './validate.ts';
import { verify, verifyRequest } from './verify.ts';

const gradingPhases: readonly Phase[] = [collect, verify, validate];

/** Runs a phase. The trial's own run of a phase is also announced and timed. */
export type RunPhase = (phase: Phase, input: PhaseInput) => Promise<Found>;

const untimed: RunPhase = (phase, input) => phase.run(input);

/** Waits until what the agent left is kept, because grading in the agent's sandbox changes it. */
const keep: Phase = {
  name: 'keep',
  async run({ keeping }) {
    await keeping?.done;
    return {};
  },
};

interface Graded {
  found: Found;
  /** Undefined if there is a verdict, or if its absence needs no explanation. */
  fault: Fault | undefined;
}

/**
 * Collects what a harness left and grades it. If grading gives no verdict, experiments show whose fault that
 * is: the table of {@link blameOf} says which come next. If it is the agent's, the trial is failed.
 *
 * Rejects only if the signal aborts.
 *
 * @param damage why nothing could run in the sandbox when the harness had ended. Undefined if all could
 */
export async function grade(input: PhaseInput, runPhase: RunPhase, damage?: OffsiteError): Promise<Found> {
  const found = { ...(await graded(input, runPhase, damage)), ...(await input.keeping?.result()) };
  return { ...found, cause: found.cause ?? (await neededFromOutside({ ...input, found })) };
}

async function graded(input: PhaseInput, runPhase: RunPhase, damage: OffsiteError | undefined) {
  const first = damage ? thrown(damage, 'harness', input.found) : await attempt(input, runPhase);
  if (first.fault === undefined) return first.found;
  return await runPhase({ name: 'control', run: () => settled(first, input, damage) }, input);
}

/**
 * The final result of a grading that first gave no verdict, after everything that is graded and asked because
 * of that.
 */
async function settled(first: Graded, input: PhaseInput, damage: OffsiteError | undefined): Promise<Found> {
  const { solve } = input.step;
  const { graded: last, blamed } = await settle(first, await agentWhoLeft(input), {
    again: () => (damage ? gradeDamaged(input) : gradeAgain(input, first.found)),
    untouched: () => gradeUntouched(input),
    solved: solve && (() => gradeSolved(input, solve)),
    askJudge: ({ found }) => askJudge(input, found),
  });
  const { cause } = last.found;
  if (!blamed || cause === undefined) return last.found;
  return { ...last.found, ...causeOfBlame(cause, blamed, input.found.cause) };
}

/** What a control showed, if it had a verdict. */
const canBeGraded = {
  untouched: 'an untouched workspace can be graded',
  solved: 'the solution of the case can be graded',
} as const;

/** The verdict of work that could not be graded, and its cause, with what shows whose fault that is. */
function causeOfBlame(
  cause: Cause,
  { blame, why, control }: Blamed<Graded>,
  earlier: Cause | undefined,
): { verdict: 'failed' | 'void'; cause: Cause } {
  const { message } = cause;
  switch (blame) {
    case 'agent': {
      const asked = cause.kind === 'model' ? 'the model answers without the work, and ' : '';
      const shown = `${asked}${canBeGraded[control?.of ?? 'untouched']}`;
      return {
        verdict: 'failed',
        cause: earlier ?? { ...cause, kind: 'agent', message: `${message}; ${shown}` },
      };
    }
    case 'machine': {
      if (cause.kind === 'infrastructure') return { verdict: 'void', cause };
      const seen = `${message}; an untouched workspace cannot be graded either: ${control?.graded.found.cause?.message}`;
      return { verdict: 'void', cause: { ...cause, kind: 'infrastructure', message: seen } };
    }
    case 'suite': {
      const kind = cause.kind === 'task' ? 'task' : 'grading';
      return {
        verdict: 'void',
        cause: { ...cause, kind, message: `${message}; the case is at fault: ${why}` },
      };
    }
    case 'model':
    case 'harness':
      return { verdict: 'void', cause: { ...cause, kind: blame } };
    case 'unknown': {
      const unknown = `${message}; it is not known whose fault that is: ${why}`;
      return { verdict: 'void', cause: { ...cause, kind: 'unknown', message: unknown } };
    }
  }
}

/** @param carry replaces what collect finds: a control is copied in the same way as the work was */
async function attempt(input: PhaseInput, runPhase: RunPhase, carry?: Found['carry']): Promise<Graded> {
  const { signal } = input;
  let { found } = input;
  for (const phase of gradingPhases) {
    if (phase === collect && found.artifacts !== undefined) continue;
    // From here on, the agent's sandbox may be changed.
    if (phase === verify && needsWholeSandbox(input.spec) && input.keeping?.done) await runPhase(keep, input);
    try {
      const given = { ...input, found };
      const more = phase.idle?.(given) ?? (await runPhase(phase, given));
      found = { ...found, ...more, ...(carry && { carry }) };
    } catch (error) {
      signal.throwIfAborted();
      return thrown(error, phase.name, found);
    }
    // The artifacts are collected. But grading is no measure of an agent that had no model or no working
    // harness.
    if (phase === collect && isCausedByOthers(found.cause)) {
      return { found: { ...found, verdict: 'void' }, fault: undefined };
    }
    if (phase === collect) input.keeping?.begin({ ...input, found });
    if (found.verdict) break;
  }
  if (found.verdict !== 'void') return { found, fault: undefined };
  return { found, fault: { from: found.failedAsk ? 'judge' : 'checks', name: 'no verdict' } };
}

function thrown(error: unknown, phase: PhaseName, found: Found): Graded {
  const cause = causeOf(error, phase);
  const from = cause.kind === 'task' ? 'checks' : 'machine';
  const name = `${phase} ${error instanceof OffsiteError ? error.code : 'unexpected'}`;
  return { found: { ...found, verdict: 'void', cause }, fault: { from, name } };
}

/** Grades the workspace that prepare left, as if a harness had done nothing. */
function gradeUntouched(input: PhaseInput): Promise<Graded> {
  return gradeControl(input, (grade) => inUntouched(input, grade));
}

/** Grades the author's solution, in the sandbox that an agent would have. */
function gradeSolved(input: PhaseInput, solve: Solve): Promise<Graded> {
  return gradeControl(input, (grade) => inSolved(input, solve, grade));
}

async function gradeControl(
  input: PhaseInput,
  inControl: (grade: (at: PhaseInput) => Promise<Graded>) => Promise<Graded>,
): Promise<Graded> {
  try {
    return await inControl((at) => attempt(at, untimed, 'all'));
  } catch (error) {
    input.signal.throwIfAborted();
    return thrown(error, 'sandbox', {});
  }
}

/** Looks at a sandbox that no agent has used, brought to where the step begins. */
export async function inUntouched<Seen>(
  input: PhaseInput,
  look: (at: PhaseInput) => Promise<Seen>,
): Promise<Seen> {
  // With services that no agent has used.
  using fresh = new FreshSandbox({ ...input, spec: input.whole, services: undefined });
  return await lookAt(input, await fresh.sandbox(), async (at) => {
    await input.step.reach(at.container);
    return look(at);
  });
}

type Solve = NonNullable<CurrentStep['solve']>;

/** Looks at a sandbox as an agent would have it, in which the author's solution ran in place of one. */
export async function inSolved<Seen>(
  input: PhaseInput,
  solve: Solve,
  look: (at: PhaseInput) => Promise<Seen>,
): Promise<Seen> {
  const { sandboxes } = input.parts;
  using given = new DisposableStack();
  // Another object than the trial's, so that this takes no sandbox that waits for the trial.
  const started = await sandboxes.take({ ...input.whole }, input.signal);
  given.defer(() => sandboxes.giveBack(started));
  return await lookAt(input, started, async (at) => {
    await solve(at.container, (solution, spec) => runSolution(solution, { ...at, spec }));
    return look(at);
  });
}

async function lookAt<Seen>(
  input: PhaseInput,
  { container, prepared, kit, services, port }: StartedSandbox,
  look: (at: PhaseInput) => Promise<Seen>,
): Promise<Seen> {
  await using models = judgesOf(input);
  using sandboxes = new GradingSandboxes({ ...input, spec: input.whole, services });
  const own = { keeping: undefined, restored: undefined };
  const started = { container, prepared, kit, services, port };
  return await look({ ...input, ...own, ...started, sandboxes, models, found: {} });
}

/**
 * Runs a solution in a sandbox that no agent has used, as an agent would run there, and ends its processes.
 */
async function runSolution(solution: TrialSolution, input: PhaseInput): Promise<void> {
  const { container, parts, signal } = input;
  const spec = { ...solvedBy(input.spec, solution), judges: [] };
  const models = openModels(spec, parts);
  await using _session = models?.session;
  if (solution.files.length > 0) await container.put(solution.files, '/', signal);
  await harness.run({ ...input, spec, models, found: {} });
}

/** Grades the agent's work again, in other sandboxes. Keeps what was collected before the first verify. */
async function gradeAgain(input: PhaseInput, first: Found): Promise<Graded> {
  await using models = judgesOf(input);
  using sandboxes = new GradingSandboxes({ ...input, spec: input.whole });
  const { filesChanged, carry, protectedChanged, artifacts, artifactsOmitted, systemChanges } = first;
  const collected = { filesChanged, carry, protectedChanged, artifacts, artifactsOmitted, systemChanges };
  const found = artifacts === undefined ? input.found : { ...input.found, ...collected };
  // It may have been read in a grading sandbox that could not be started.
  const prepared = () =>
    input.prepared().catch(async () => {
      input.signal.throwIfAborted();
      return (await sandboxes.verify.sandbox()).prepared();
    });
  return await attempt({ ...input, sandboxes, models, found, prepared }, untimed);
}

/** Grades work whose sandbox seemed damaged, if what the harness left running there can be ended now. */
async function gradeDamaged(input: PhaseInput): Promise<Graded> {
  try {
    await input.container.killAll(input.signal);
  } catch (error) {
    input.signal.throwIfAborted();
    return thrown(error, 'harness', input.found);
  }
  return await gradeAgain(input, {});
}

/** How a judge's models answer the question that got no answer, without the material to judge. */
async function askJudge(input: PhaseInput, { failedAsk }: Found): Promise<JudgeAnswer> {
  if (failedAsk === undefined) return 'answers';
  await using models = judgesOf(input);
  const judge: AskModel | undefined =
    models && ((request, stop) => models.session.chat('judge', request, stop));
  const { spec, parts, signal } = input;
  const timeoutMs = spec.sandbox.timeouts.validator;
  return await answerAboutNothing(failedAsk, { judge, clock: parts.clock, timeoutMs, signal });
}

/** Opens judges with a full budget, as before the first grading spent from it. */
function judgesOf({ spec, parts }: PhaseInput): (TrialModels & AsyncDisposable) | undefined {
  if (spec.judges.length === 0) return undefined;
  const models = openModels(spec, parts);
  return models && { ...models, [Symbol.asyncDispose]: () => models.session[Symbol.asyncDispose]() };
}

function isCausedByOthers(cause: Cause | undefined): boolean {
  return cause !== undefined && cause.kind !== 'agent';
}

/**
 * The cause of a failed trial if verify fails in the fresh sandbox but would pass in the agent's sandbox: the
 * work needs something outside the workspace. Undefined if that is not so or cannot be determined. Call this
 * last, because it runs verify in the agent's sandbox. Rejects only if the signal aborts.
 */
async function neededFromOutside(input: PhaseInput): Promise<Cause | undefined> {
  const request = verifyRequest(input);
  if (!request || !failsFreshVerify(input.found)) return undefined;
  try {
    return await causeIfVerifyPasses(input, request);
  } catch {
    input.signal.throwIfAborted();
    // The verdict stands without an explanation: an agent can leave a sandbox in which nothing runs.
    return undefined;
  }
}

async function causeIfVerifyPasses(
  { spec, container, kit, signal }: PhaseInput,
  request: VerifyRequest,
): Promise<Cause | undefined> {
  const { unexpected } = await systemChanges(container, { kit, place: spec.verifyPlace, signal });
  if (unexpected.length === 0) return undefined;
  const inAgents = await runVerify(container, request);
  if (inAgents.ended !== 'finished' || inAgents.steps.some(({ exitCode }) => exitCode !== 0))
    return undefined;
  const message =
    'verify fails in a fresh sandbox with only the workspace, but would pass in the agent’s sandbox, which ' +
    `has changes outside the workspace: ${shownPaths(unexpected)}. If the case is about the system, ` +
    'set `in: same` for verify.';
  return { kind: 'agent', phase: 'verify', message };
}

function failsFreshVerify({ verdict, cause, verifiedIn, verifySteps = [] }: Found): boolean {
  const failed = verifySteps.some(({ exitCode }) => exitCode !== 0);
  return verdict === 'failed' && cause === undefined && verifiedIn === 'fresh' && failed;
}
