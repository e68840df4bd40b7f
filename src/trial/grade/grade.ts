import { OffsiteError } from '../../base/offsite-error.ts';
import type { Cause, PhaseName } from '../../record/cause.ts';
import type { AskModel } from '../../validate/judge/judge.ts';
import { answerAboutNothing, type JudgeAnswer } from '../../validate/model-calls.ts';
import { runVerify, type VerifyRequest } from '../../validate/verify.ts';
import { type Blamed, causeOf, type Fault, settle } from '../blame.ts';
import { collect } from '../collect/collect.ts';
import { needsWholeSandbox } from '../collect/keep-left.ts';
import { shownPaths, systemChanges } from '../collect/system-changes.ts';
import {
  FreshSandbox,
  GradingSandboxes,
  type OpenRecord,
  type Phase,
  type RunPhase,
  type TrialParts,
  type TrialSandbox,
} from '../phase.ts';
import type { StartedSandbox } from '../prepare/started-sandbox.ts';
import { agentWhoLeft } from '../run/ending-cause.ts';
import { harness } from '../run/harness.ts';
import { openModels, type TrialModels } from '../run/models.ts';
import { type Solve, solvedBy, type TrialSolution, type TrialSpec } from '../spec.ts';
import { validate } from './validate.ts';
import { verify, verifyRequest } from './verify.ts';

const gradingPhases: readonly Phase[] = [collect, verify, validate];

/** For gradings besides the trial's own. */
const untimed: RunPhase = (phase, ...args) => phase.run(...args);

/** Waits until what the agent left is kept, because grading in the agent's sandbox changes it. */
const keep: Phase = {
  name: 'keep',
  async run(_, { keeping }) {
    await keeping?.done;
    return {};
  },
};

interface Graded {
  found: OpenRecord;
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
export async function grade(
  spec: TrialSpec,
  sandbox: TrialSandbox,
  record: OpenRecord,
  runPhase: RunPhase,
  damage?: OffsiteError,
): Promise<OpenRecord> {
  const first = damage ? thrown(damage, 'harness', record) : await attempt(spec, sandbox, record, runPhase);
  const control: Phase = { name: 'control', run: (...args) => settled(first, damage, ...args) };
  const graded = first.fault ? await runPhase(control, spec, sandbox, record) : first.found;
  const found = { ...graded, ...(await sandbox.keeping?.result()) };
  return { ...found, cause: found.cause ?? (await neededFromOutside(spec, sandbox, found)) };
}

/**
 * The final result of a grading that first gave no verdict, after everything that is graded and asked because
 * of that.
 */
async function settled(
  first: Graded,
  damage: OffsiteError | undefined,
  spec: TrialSpec,
  sandbox: TrialSandbox,
  record: OpenRecord,
): Promise<OpenRecord> {
  const { solve } = sandbox;
  const look = (at: TrialSandbox) => attempt(spec, at, {}, untimed, 'all');
  const { graded: last, blamed } = await settle(first, await agentWhoLeft(spec, sandbox), {
    again: () =>
      damage ? gradeDamaged(spec, sandbox, record) : gradeAgain(spec, sandbox, record, first.found),
    untouched: () => gradeControl(sandbox, inUntouched(spec, sandbox, look)),
    solved: solve && (() => gradeControl(sandbox, inSolved(spec, sandbox, solve, look))),
    askJudge: ({ found }) => askJudge(spec, sandbox, found),
  });
  const { cause } = last.found;
  if (!blamed || cause === undefined) return last.found;
  return { ...last.found, ...causeOfBlame(cause, blamed, record.cause) };
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
async function attempt(
  spec: TrialSpec,
  sandbox: TrialSandbox,
  record: OpenRecord,
  runPhase: RunPhase,
  carry?: OpenRecord['carry'],
): Promise<Graded> {
  const { signal, keeping } = sandbox;
  let found = record;
  for (const phase of gradingPhases) {
    if (phase === collect && found.artifacts !== undefined) continue;
    // From here on, the agent's sandbox may be changed.
    if (phase === verify && needsWholeSandbox(spec) && keeping?.done)
      await runPhase(keep, spec, sandbox, found);
    try {
      const more = phase.idle?.(spec) ?? (await runPhase(phase, spec, sandbox, found));
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
    if (phase === collect) keeping?.begin(spec, sandbox, found);
    if (found.verdict) break;
  }
  if (found.verdict !== 'void') return { found, fault: undefined };
  return { found, fault: { from: found.failedAsk ? 'judge' : 'checks', name: 'no verdict' } };
}

function thrown(error: unknown, phase: PhaseName, found: OpenRecord): Graded {
  const cause = causeOf(error, phase);
  const from = cause.kind === 'task' ? 'checks' : 'machine';
  const name = `${phase} ${error instanceof OffsiteError ? error.code : 'unexpected'}`;
  return { found: { ...found, verdict: 'void', cause }, fault: { from, name } };
}

/**
 * What a control showed: the workspace that prepare left, as if a harness had done nothing, or the author's
 * solution in the sandbox that an agent would have.
 */
async function gradeControl({ signal }: TrialSandbox, control: Promise<Graded>): Promise<Graded> {
  try {
    return await control;
  } catch (error) {
    signal.throwIfAborted();
    return thrown(error, 'sandbox', {});
  }
}

/** Looks at a sandbox that no agent has used, brought to where the step begins. */
export async function inUntouched<Seen>(
  spec: TrialSpec,
  sandbox: TrialSandbox,
  look: (at: TrialSandbox) => Promise<Seen>,
): Promise<Seen> {
  // With services that no agent has used.
  using fresh = new FreshSandbox({ ...sandbox, spec: sandbox.whole, services: undefined });
  return await lookAt(spec, sandbox, await fresh.sandbox(), async (at) => {
    await sandbox.reach(at.container);
    return look(at);
  });
}

/** Looks at a sandbox as an agent would have it, in which the author's solution ran in place of one. */
export async function inSolved<Seen>(
  spec: TrialSpec,
  sandbox: TrialSandbox,
  solve: Solve,
  look: (at: TrialSandbox) => Promise<Seen>,
): Promise<Seen> {
  const { sandboxes } = sandbox.parts;
  using given = new DisposableStack();
  // Another object than the trial's, so that this takes no sandbox that waits for the trial.
  const started = await sandboxes.take({ ...sandbox.whole }, sandbox.signal);
  given.defer(() => sandboxes.giveBack(started));
  return await lookAt(spec, sandbox, started, async (at) => {
    await solve(at.container, (solution, step) => runSolution(solution, step, at));
    return look(at);
  });
}

async function lookAt<Seen>(
  spec: TrialSpec,
  sandbox: TrialSandbox,
  { container, prepared, kit, services, port }: StartedSandbox,
  look: (at: TrialSandbox) => Promise<Seen>,
): Promise<Seen> {
  await using models = judgesOf(spec, sandbox.parts);
  using graders = new GradingSandboxes({ ...sandbox, spec: sandbox.whole, services });
  const own = { keeping: undefined, restored: undefined };
  const started = { container, prepared, kit, services, port };
  return await look({ ...sandbox, ...own, ...started, graders, models });
}

/**
 * Runs a solution in a sandbox that no agent has used, as an agent would run there, and ends its processes.
 */
async function runSolution(solution: TrialSolution, solved: TrialSpec, sandbox: TrialSandbox): Promise<void> {
  const { container, parts, signal } = sandbox;
  const spec = { ...solvedBy(solved, solution), judges: [] };
  await using models = openModels(spec, parts);
  if (solution.files.length > 0) await container.put(solution.files, '/', signal);
  await harness.run(spec, { ...sandbox, models }, {});
}

/** Grades the agent's work again, in other sandboxes. Keeps what was collected before the first verify. */
async function gradeAgain(
  spec: TrialSpec,
  sandbox: TrialSandbox,
  record: OpenRecord,
  first: OpenRecord,
): Promise<Graded> {
  const { parts, signal } = sandbox;
  await using models = judgesOf(spec, parts);
  using graders = new GradingSandboxes({ ...sandbox, spec: sandbox.whole });
  const { filesChanged, carry, protectedChanged, artifacts, artifactsOmitted, systemChanges } = first;
  const collected = { filesChanged, carry, protectedChanged, artifacts, artifactsOmitted, systemChanges };
  const found = artifacts === undefined ? record : { ...record, ...collected };
  // It may have been read in a grading sandbox that could not be started.
  const prepared = () =>
    sandbox.prepared().catch(async () => {
      signal.throwIfAborted();
      return (await graders.verify.sandbox()).prepared();
    });
  return await attempt(spec, { ...sandbox, graders, models, prepared }, found, untimed);
}

/** Grades work whose sandbox seemed damaged, if what the harness left running there can be ended now. */
async function gradeDamaged(spec: TrialSpec, sandbox: TrialSandbox, record: OpenRecord): Promise<Graded> {
  const { container, signal } = sandbox;
  try {
    await container.killAll(signal);
  } catch (error) {
    signal.throwIfAborted();
    return thrown(error, 'harness', record);
  }
  return await gradeAgain(spec, sandbox, record, {});
}

/** How a judge's models answer the question that got no answer, without the material to judge. */
async function askJudge(
  spec: TrialSpec,
  { parts, signal }: TrialSandbox,
  { failedAsk }: OpenRecord,
): Promise<JudgeAnswer> {
  if (failedAsk === undefined) return 'answers';
  await using models = judgesOf(spec, parts);
  const judge: AskModel | undefined =
    models && ((request, stop) => models.session.chat('judge', request, stop));
  const timeoutMs = spec.sandbox.timeouts.validator;
  return await answerAboutNothing(failedAsk, { judge, clock: parts.clock, timeoutMs, signal });
}

/** Opens judges with a full budget, as before the first grading spent from it. */
function judgesOf(spec: TrialSpec, parts: TrialParts): TrialModels | undefined {
  return spec.judges.length === 0 ? undefined : openModels(spec, parts);
}

function isCausedByOthers(cause: Cause | undefined): boolean {
  return cause !== undefined && cause.kind !== 'agent';
}

/**
 * The cause of a failed trial if verify fails in the fresh sandbox but would pass in the agent's sandbox: the
 * work needs something outside the workspace. Undefined if that is not so or cannot be determined. Call this
 * last, because it runs verify in the agent's sandbox. Rejects only if the signal aborts.
 */
async function neededFromOutside(
  spec: TrialSpec,
  sandbox: TrialSandbox,
  found: OpenRecord,
): Promise<Cause | undefined> {
  const request = verifyRequest(spec, sandbox);
  if (!request || !failsFreshVerify(found)) return undefined;
  try {
    return await causeIfVerifyPasses(spec, sandbox, request);
  } catch {
    sandbox.signal.throwIfAborted();
    // The verdict stands without an explanation: an agent can leave a sandbox in which nothing runs.
    return undefined;
  }
}

async function causeIfVerifyPasses(
  spec: TrialSpec,
  { container, kit, signal }: TrialSandbox,
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

function failsFreshVerify({ verdict, cause, verifiedIn, verifySteps = [] }: OpenRecord): boolean {
  const failed = verifySteps.some(({ exitCode }) => exitCode !== 0);
  return verdict === 'failed' && cause === undefined && verifiedIn === 'fresh' && failed;
}
