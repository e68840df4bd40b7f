import { runVerify, type VerifyRequest } from '../validate/verify.ts';
import type { Found, PhaseInput } from './phases/phase.ts';
import { verifyRequest } from './phases/verify.ts';
import type { Cause } from './result.ts';
import { shownPaths, systemChanges } from './system-changes.ts';

/**
 * Why a trial failed whose verify fails in the fresh sandbox and would pass in the agent's own: the work
 * needs something outside the workspace. Undefined where that is not so, or cannot be told. To be asked last,
 * since verify is run in the agent's sandbox. Rejects only where the signal aborts.
 */
export async function neededFromOutside(input: PhaseInput): Promise<Cause | undefined> {
  const request = verifyRequest(input);
  if (!request || !failsFreshVerify(input.found)) return undefined;
  try {
    return await whatPassesThere(input, request);
  } catch {
    input.signal.throwIfAborted();
    // The verdict stands without an explanation: an agent may leave a sandbox in which nothing can run.
    return undefined;
  }
}

async function whatPassesThere(
  { spec, container, kit, signal }: PhaseInput,
  request: VerifyRequest,
): Promise<Cause | undefined> {
  const { unexpected } = await systemChanges(container, { kit, place: spec.verifyPlace, signal });
  if (unexpected.length === 0) return undefined;
  const there = await runVerify(container, request);
  if (there.ended !== 'finished' || there.steps.some(({ exitCode }) => exitCode !== 0)) return undefined;
  const message =
    'verify fails in a fresh sandbox that holds the workspace alone, and would pass in the agent’s own, which ' +
    `has changes outside the workspace: ${shownPaths(unexpected)}. Where the case is about the system, give ` +
    'verify `in: same`.';
  return { kind: 'agent', phase: 'verify', message };
}

function failsFreshVerify({ verdict, cause, verifiedIn, verifySteps = [] }: Found): boolean {
  const failed = verifySteps.some(({ exitCode }) => exitCode !== 0);
  return verdict === 'failed' && cause === undefined && verifiedIn === 'fresh' && failed;
}
