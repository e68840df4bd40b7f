import { OffsiteError } from '../offsite-error.ts';
import type { Cause } from '../record/cause.ts';
import type { AskModel } from '../validate/judge/ask-model.ts';
import { answersAboutNothing } from '../validate/model-calls.ts';
import { causeOf } from './failure.ts';
import { FreshSandbox, GradingSandboxes } from './grading-sandboxes.ts';
import { needsWholeSandbox } from './left/keep-left.ts';
import { openModels, type TrialModels } from './models.ts';
import { neededFromOutside } from './own-sandbox.ts';
import { collect } from './phases/collect.ts';
import type { Found, Phase, PhaseInput } from './phases/phase.ts';
import { validate } from './phases/validate.ts';
import { verify } from './phases/verify.ts';

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
  /**
   * Why grading gave no verdict, if the state that the agent left may be the reason. Two equal texts mean the
   * same problem occurred twice.
   */
  doubt: string | undefined;
}

/**
 * Collects what a harness left and grades it. If grading gives no verdict, an untouched workspace is graded
 * in the same way, as a control:
 *
 * - If the control gives no verdict either, the trial is void.
 * - If a model gave the validator no answer, and no model was asked for the control, the control says nothing
 * about the models. So the same question is asked again without the material to judge. If that gets no answer
 * either, the trial is void.
 * - If the control gives a verdict, the agent's work is graded again. If that again gives no verdict, the
 * state that the agent left is the reason, and the trial is failed.
 *
 * Rejects only if the signal aborts.
 */
export async function grade(input: PhaseInput, runPhase: RunPhase): Promise<Found> {
  const found = { ...(await graded(input, runPhase)), ...(await input.keeping?.result()) };
  return { ...found, cause: found.cause ?? (await neededFromOutside({ ...input, found })) };
}

async function graded(input: PhaseInput, runPhase: RunPhase): Promise<Found> {
  const first = await attempt(input, runPhase);
  if (first.doubt === undefined) return first.found;
  return await runPhase({ name: 'control', run: () => settled(first, input) }, input);
}

/**
 * The final result of a grading that first gave no verdict, after everything that is graded and asked because
 * of that.
 */
async function settled(first: Graded, input: PhaseInput): Promise<Found> {
  const { graded: last, isTheAgents } = await settle(first, {
    again: () => gradeAgain(input, first.found),
    untouched: () => gradeUntouched(input),
    areModelsFine: (control) => areModelsFine(input, first.found, control.found),
  });
  const { cause } = last.found;
  if (!isTheAgents || cause === undefined) return last.found;
  return { ...last.found, verdict: 'failed', cause: agentCause(cause, input.found.cause) };
}

interface Settled<Result> {
  graded: Result;
  /** Whether the state that the agent left is why there is no verdict. */
  isTheAgents: boolean;
}

/**
 * Decides what a grading without a verdict means. A passing fault of the machine does not occur twice in the
 * same way with a successful control in between. Work that fails in another way each time gets a second
 * control: if that is graded too, the work is the reason.
 */
export async function settle<Result extends { doubt: string | undefined; found: Pick<Found, 'verdict'> }>(
  first: Result,
  grade: {
    again(): Promise<Result>;
    untouched(): Promise<Result>;
    areModelsFine(control: Result): Promise<boolean>;
  },
): Promise<Settled<Result>> {
  let last = first;
  for (let controls = 0; last.doubt !== undefined; controls++) {
    const control = await grade.untouched();
    if (control.found.verdict === 'void' || !(await grade.areModelsFine(control))) break;
    if (controls === 1) return { graded: last, isTheAgents: true };
    const { doubt } = last;
    last = await grade.again();
    if (last.doubt === doubt) return { graded: last, isTheAgents: true };
  }
  return { graded: last, isTheAgents: false };
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
      const doubt = `${phase.name} ${error instanceof OffsiteError ? error.code : 'unexpected'}`;
      return { found: { ...found, verdict: 'void', cause: causeOf(error, phase.name) }, doubt };
    }
    // The artifacts are collected. But grading is no measure of an agent that had no model or no working
    // harness.
    if (phase === collect && isCausedByOthers(found.cause)) {
      return { found: { ...found, verdict: 'void' }, doubt: undefined };
    }
    if (phase === collect) input.keeping?.begin({ ...input, found });
    if (found.verdict) break;
  }
  const { verdict, cause } = found;
  const isInDoubt = verdict === 'void' && (cause?.kind === 'grading' || cause?.kind === 'task');
  return { found, doubt: isInDoubt ? 'no verdict' : undefined };
}

/** Grades the workspace that prepare left, as if a harness had done nothing. */
async function gradeUntouched(input: PhaseInput): Promise<Graded> {
  await using models = judgesOf(input);
  // With services that no agent has used.
  using fresh = new FreshSandbox({ ...input, spec: input.whole, services: undefined });
  try {
    const { container, before, kit, services, port } = await fresh.sandbox();
    using sandboxes = new GradingSandboxes({ ...input, spec: input.whole, services });
    await input.step.reach(container);
    const own = { keeping: undefined, restored: undefined };
    const started = { container, before, kit, services, port };
    const untouched = { ...input, ...own, ...started, sandboxes, models, found: {} };
    return await attempt(untouched, untimed, 'all');
  } catch (error) {
    input.signal.throwIfAborted();
    return { found: { verdict: 'void', cause: causeOf(error, 'sandbox') }, doubt: undefined };
  }
}

/** Grades the agent's work again, in other sandboxes. Keeps what was collected before the first verify. */
async function gradeAgain(input: PhaseInput, first: Found): Promise<Graded> {
  await using models = judgesOf(input);
  using sandboxes = new GradingSandboxes({ ...input, spec: input.whole });
  const { filesChanged, carry, protectedChanged, artifacts, artifactsOmitted, systemChanges } = first;
  const collected = { filesChanged, carry, protectedChanged, artifacts, artifactsOmitted, systemChanges };
  const found = artifacts === undefined ? input.found : { ...input.found, ...collected };
  return await attempt({ ...input, sandboxes, models, found }, untimed);
}

/** False if the models that a validator asks are the reason why the work has no verdict. */
async function areModelsFine(input: PhaseInput, { failedAsk }: Found, control: Found): Promise<boolean> {
  if (failedAsk === undefined) return true;
  const answered = control.validations?.some(({ calls = [] }) =>
    calls.some(({ error }) => error === undefined),
  );
  if (answered) return true;
  await using models = judgesOf(input);
  const judge: AskModel | undefined =
    models && ((request, stop) => models.session.chat('judge', request, stop));
  return await answersAboutNothing(failedAsk, { judge, clock: input.parts.clock, signal: input.signal });
}

/** Opens judges with a full budget, as before the first grading spent from it. */
function judgesOf({ spec, parts }: PhaseInput): (TrialModels & AsyncDisposable) | undefined {
  if (spec.judges.length === 0) return undefined;
  const models = openModels(spec, parts);
  return models && { ...models, [Symbol.asyncDispose]: () => models.session[Symbol.asyncDispose]() };
}

function agentCause(cause: Cause, earlier: Cause | undefined): Cause {
  const message = `${cause.message}; an untouched workspace can be graded`;
  return earlier ?? { ...cause, kind: 'agent', message };
}

function isCausedByOthers(cause: Cause | undefined): boolean {
  return cause !== undefined && cause.kind !== 'agent';
}
