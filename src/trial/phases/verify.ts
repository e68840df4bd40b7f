import { runVerify, type VerifyRequest } from '../../validate/verify.ts';
import { gradingPrevented } from '../control.ts';
import { gradingEnvironment } from '../environment.ts';
import { places } from '../places.ts';
import type { Cause, TrialResult } from '../result.ts';
import type { Phase, PhaseInput } from './phase.ts';

/** Runs the case's verify steps. */
export const verify: Phase = { name: 'verify', run };

/** How the case's verify is run; undefined where it has none. */
export function verifyRequest({
  spec,
  signal,
}: Pick<PhaseInput, 'spec' | 'signal'>): VerifyRequest | undefined {
  if (spec.verify === undefined) return undefined;
  return {
    script: spec.verify,
    env: gradingEnvironment(spec.variables),
    cwd: places.workspace,
    timeoutMs: spec.sandbox.timeouts.verify,
    signal,
  };
}

/** What the harness filled beyond its limit is no reason to end who looks at it. */
async function roomAfter({ spec, container, found, signal }: PhaseInput): Promise<{ diskBytes?: number }> {
  const { disk } = spec.sandbox;
  if (found.harness?.ended !== 'out-of-disk' || disk === undefined) return {};
  return { diskBytes: (await container.writtenBytes(signal)) + disk };
}

async function run(input: PhaseInput): Promise<Partial<TrialResult>> {
  const { container, found } = input;
  const request = verifyRequest(input);
  if (!request) return { verifySteps: [] };
  const verification = await runVerify(container, { ...request, ...(await roomAfter(input)) });
  const cause = (message: string): Cause => ({ kind: 'task', phase: 'verify', message });
  switch (verification.ended) {
    case 'finished':
      return { verifySteps: verification.steps };
    case 'timed-out':
    case 'out-of-disk': {
      const why =
        verification.ended === 'timed-out'
          ? `after ${request.timeoutMs / 1000} s`
          : 'for writing more than the sandbox may';
      return {
        verifySteps: verification.steps,
        cause: found.cause ?? cause(`verify was stopped ${why}`),
      };
    }
    case 'not-started':
      return gradingPrevented(
        input,
        cause(`verify could not be started: ${verification.message}`),
        async (fresh) => (await runVerify(fresh, { ...request, script: 'true' })).ended !== 'not-started',
      );
  }
}
