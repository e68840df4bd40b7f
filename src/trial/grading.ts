import { OffsiteError } from '../offsite-error.ts';
import { causeOf } from './failure.ts';
import { FreshSandbox, GradingSandboxes } from './grading-sandboxes.ts';
import { openModels, type TrialModels } from './models.ts';
import { neededFromOutside } from './own-sandbox.ts';
import { collect } from './phases/collect.ts';
import type { Found, Phase, PhaseInput } from './phases/phase.ts';
import { validate } from './phases/validate.ts';
import { verify } from './phases/verify.ts';
import type { Cause } from './result.ts';

const gradingPhases: readonly Phase[] = [collect, verify, validate];

/** Runs a phase; a trial's own are told and timed. */
export type Through = (phase: Phase, input: PhaseInput) => Promise<Found>;

const unseen: Through = (phase, input) => phase.run(input);

interface Graded {
  found: Found;
  /**
   * What kept grading from a verdict, where the state that the agent left may be the reason: equal where the
   * same thing came twice.
   */
  doubt: string | undefined;
}

/**
 * Collects what a harness left and grades it. Where that gives no verdict, an untouched workspace is graded
 * in the same way: no verdict there either is a void trial. Where it gives one, and the agent's work gives
 * none again, the state that the agent left is the reason, and the trial is failed. Rejects only where the
 * signal aborts.
 */
export async function grade(input: PhaseInput, through: Through): Promise<Found> {
  const found = await graded(input, through);
  return { ...found, cause: found.cause ?? (await neededFromOutside({ ...input, found })) };
}

async function graded(input: PhaseInput, through: Through): Promise<Found> {
  const first = await attempt(input, through);
  if (first.doubt === undefined) return first.found;
  const control = await gradeUntouched(input);
  if (control.found.verdict === 'void') return first.found;
  const again = await gradeAgain(input, first.found);
  // A stumble of the machine's does not come twice, with a control between that went well.
  if (again.doubt !== first.doubt || again.found.cause === undefined) return again.found;
  return { ...again.found, verdict: 'failed', cause: agentsDoing(again.found.cause, input.found.cause) };
}

/** @param carry overrules what collect finds: a control goes the way that the work went */
async function attempt(input: PhaseInput, through: Through, carry?: Found['carry']): Promise<Graded> {
  const { signal } = input;
  let { found } = input;
  for (const phase of gradingPhases) {
    if (phase === collect && found.artifacts !== undefined) continue;
    try {
      found = { ...found, ...(await through(phase, { ...input, found })), ...(carry && { carry }) };
    } catch (error) {
      signal.throwIfAborted();
      const doubt = `${phase.name} ${error instanceof OffsiteError ? error.code : 'unexpected'}`;
      return { found: { ...found, verdict: 'void', cause: causeOf(error, phase.name) }, doubt };
    }
    // What there is was collected; an agent that had no model, or no working harness, is not graded by it.
    if (phase === collect && isNotTheAgents(found.cause)) {
      return { found: { ...found, verdict: 'void' }, doubt: undefined };
    }
    if (found.verdict) break;
  }
  const { verdict, cause } = found;
  const isInDoubt = verdict === 'void' && (cause?.kind === 'grading' || cause?.kind === 'task');
  return { found, doubt: isInDoubt ? 'no verdict' : undefined };
}

/** Grades a workspace as prepare left it, as if a harness had done nothing. */
async function gradeUntouched(input: PhaseInput): Promise<Graded> {
  await using models = judgesOf(input);
  using fresh = new FreshSandbox(input);
  using sandboxes = new GradingSandboxes(input);
  try {
    const { container, before, kit } = await fresh.sandbox();
    const untouched = { ...input, container, before, kit, sandboxes, models, found: {} };
    return await attempt(untouched, unseen, 'all');
  } catch (error) {
    input.signal.throwIfAborted();
    return { found: { verdict: 'void', cause: causeOf(error, 'sandbox') }, doubt: undefined };
  }
}

/**
 * Grades the agent's work once more, in other sandboxes. What was collected before verify stays what it is.
 */
async function gradeAgain(input: PhaseInput, first: Found): Promise<Graded> {
  await using models = judgesOf(input);
  using sandboxes = new GradingSandboxes(input);
  const { filesChanged, carry, protectedChanged, artifacts, artifactsOmitted } = first;
  const collected = { filesChanged, carry, protectedChanged, artifacts, artifactsOmitted };
  const found = artifacts === undefined ? input.found : { ...input.found, ...collected };
  return await attempt({ ...input, sandboxes, models, found }, unseen);
}

/** Judges whose account is as it was before the first grading spent from it. */
function judgesOf({ spec, parts }: PhaseInput): (TrialModels & AsyncDisposable) | undefined {
  if (spec.judges.length === 0) return undefined;
  const models = openModels(spec, parts);
  return models && { ...models, [Symbol.asyncDispose]: () => models.session[Symbol.asyncDispose]() };
}

function agentsDoing(cause: Cause, earlier: Cause | undefined): Cause {
  const message = `${cause.message}; with an untouched workspace it can be graded`;
  return earlier ?? { ...cause, kind: 'agent', message };
}

function isNotTheAgents(cause: Cause | undefined): boolean {
  return cause !== undefined && cause.kind !== 'agent';
}
