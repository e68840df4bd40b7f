import type { Cause } from '../record/cause.ts';
import { runVerify, type VerifyRequest } from '../validate/verify.ts';
import type { Found, PhaseInput } from './phases/phase.ts';
import { verifyRequest } from './phases/verify.ts';
import { shownPaths, systemChanges } from './workspace/system-changes.ts';

/**
 * The cause of a failed trial if verify fails in the fresh sandbox but would pass in the agent's sandbox: the
 * work needs something outside the workspace. Undefined if that is not so or cannot be determined. Call this
 * last, because it runs verify in the agent's sandbox. Rejects only if the signal aborts.
 */
export async function neededFromOutside(input: PhaseInput): Promise<Cause | undefined> {
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
