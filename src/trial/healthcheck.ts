import type { Clock } from '../base/clock.ts';
import type { Container } from '../engine/container.ts';
import { howItEnded, isSuccess } from '../engine/exec/exec-request.ts';
import { gradingEnvironment } from './environment.ts';
import { TrialFailure } from './failure.ts';
import type { TrialSpec } from './spec.ts';

/**
 * Waits until the healthcheck of a trial's environment succeeds in a started sandbox. Throws a
 * {@link TrialFailure} of kind `task` after its last failure.
 */
export async function requireHealth(
  container: Container,
  { environment: { healthcheck }, variables }: TrialSpec,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  if (!healthcheck) return;
  const { command, interval, timeout, startPeriod, retries } = healthcheck;
  const begun = clock.now();
  for (let failures = 0; ; ) {
    const result = await container.exec({
      argv: ['bash', '-c', `{ ${command}\n} 2>&1`],
      env: gradingEnvironment(variables, container),
      timeoutMs: timeout,
      signal,
    });
    signal.throwIfAborted();
    if (isSuccess(result)) return;
    if (clock.now() - begun >= startPeriod) failures += 1;
    if (failures >= retries) {
      const message = `the healthcheck failed ${failures} times, and ${howItEnded(result, timeout)} the last time`;
      const output = result.stdout.text;
      throw new TrialFailure({ kind: 'task', phase: 'sandbox', message, output });
    }
    await clock.sleep(interval, signal);
  }
}
