import type { VerifyStep } from '../contract/report.ts';
import type { Container } from '../engine/container.ts';

/** A verify step as the ledger keeps it; the wire has no place for its output. */
export interface VerifiedStep extends VerifyStep {
  output: string;
  outputTruncated: boolean;
}

/**
 * `timed-out`, `out-of-disk`: the last step was killed, and what follows it never ran. `not-started`: the
 * sandbox cannot run bash there.
 */
export type Verification =
  | { ended: 'finished'; steps: VerifiedStep[]; devicesIntact: boolean; shielded: boolean }
  | { ended: 'timed-out' | 'out-of-disk'; steps: VerifiedStep[] }
  | { ended: 'not-started'; message: string };

export interface VerifyRequest {
  script: string;
  env: Record<string, string>;
  /** Absolute. */
  cwd: string;
  timeoutMs: number;
  /** As in a {@link Container}'s script: its own limit when left out. */
  diskBytes?: number;
  signal: AbortSignal;
}

/**
 * 128 + SIGKILL: what a process that was killed exits with. A step whose end nobody told is never taken for a
 * success.
 */
const killed = 137;

/**
 * Runs a verify script, one step a command, in a sandbox where nothing of the harness runs. Throws where the
 * engine failed.
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
  }));
  if (result.ended === 'finished') {
    const { devicesIntact, shielded } = result;
    return { ended: 'finished', steps, devicesIntact, shielded };
  }
  // A canceled one has thrown above.
  return { ended: result.ended === 'out-of-disk' ? 'out-of-disk' : 'timed-out', steps };
}
