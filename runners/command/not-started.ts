import type { HarnessContext } from '../../src/harness/runner.ts';
import { OffsiteError } from '../../src/offsite-error.ts';

/** The engine, or the image's bash, could not start the script. */
export function notStarted({ name }: HarnessContext['profile'], message: string): OffsiteError {
  return new OffsiteError(`the run script of profile ${name} could not be started: ${message}`, {
    code: 'RUNNER_NOT_STARTED',
    kind: 'infrastructure',
  });
}
