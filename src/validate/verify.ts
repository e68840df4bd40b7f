import type { Clock } from '../base/clock.ts';
import type { VerifyStep } from '../contract/report.ts';
import type { Container } from '../engine/container.ts';

/** A verify step as the ledger keeps it. The wire has no field for its output. */
export interface VerifiedStep extends VerifyStep {
  output: string;
  outputTruncated: boolean;
  /** Bash cannot read the command, and nothing of it ran. */
  unreadable?: true;
  /** Epoch milliseconds. */
  startedAt: number;
  durationMs: number;
}

/**
 * `timed-out`, `out-of-disk`: the last step was killed, and later steps never ran. `not-started`: the sandbox
 * cannot run bash in the working folder.
 */
export type Verification =
  | { ended: 'finished'; steps: VerifiedStep[]; devicesIntact: boolean; shielded: boolean }
  | { ended: 'timed-out' | 'out-of-disk'; steps: VerifiedStep[] }
  | { ended: 'not-started'; message: string };

export interface VerifyRequest {
  script: string;
  env: Record<string, string>;
  /** An absolute path. */
  cwd: string;
  timeoutMs: number;
  signal: AbortSignal;
  clock: Clock;
}

/**
 * 128 + SIGKILL: the exit code of a killed process. A step whose end was not reported never counts as a
 * success.
 */
const killed = 137;

/**
 * Runs a verify script, one step per command, in a sandbox where no process of the harness runs. Throws if
 * the engine fails.
 */
export async function runVerify(container: Container, request: VerifyRequest): Promise<Verification> {
  const result = await container.runScript({ ...request, shield: true });
  request.signal.throwIfAborted();
  if (result.ended === 'not-started') return { ended: 'not-started', message: result.message };
  const steps = result.steps.map((step) => ({
    command: step.command,
    exitCode: step.ended === 'exited' ? step.exitCode : killed,
    output: step.output,
    outputTruncated: step.outputTruncated,
    ...(step.ended === 'exited' && step.unreadable && { unreadable: true as const }),
    startedAt: step.startedAtMillis,
    durationMs: step.finishedAtMillis - step.startedAtMillis,
  }));
  if (result.ended === 'finished') {
    const { devicesIntact, shielded } = result;
    return { ended: 'finished', steps, devicesIntact, shielded };
  }
  // A canceled script has thrown above.
  return { ended: result.ended === 'out-of-disk' ? 'out-of-disk' : 'timed-out', steps };
}
