import type { Clock } from '../base/clock.ts';
import type { VerifyStep } from '../contract/report.ts';
import type { Judgment, ReportedValidation, Validation } from '../contract/validation.ts';
import type { Container } from '../engine/container.ts';
import { reachesThreshold } from '../record/failures.ts';

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

interface Findings {
  verifySteps: readonly VerifyStep[];
  validations: readonly ReportedValidation[];
  judgments: readonly Judgment[];
}

/**
 * `passed` if every verify step exited 0, every validation passed and every judgment with a threshold reached
 * it. `void` if there was nothing to check. The harness's exit code does not count.
 */
export function verdictOf({ verifySteps, validations, judgments }: Findings): 'passed' | 'failed' | 'void' {
  const checks = [
    ...verifySteps.map(({ exitCode }) => exitCode === 0),
    ...validations.map(({ exitCode }) => exitCode === 0),
    ...judgments.filter(({ threshold }) => threshold !== undefined).map(reachesThreshold),
  ];
  if (checks.length === 0) return 'void';
  return checks.every(Boolean) ? 'passed' : 'failed';
}

/** The result of a check that Offsite adds to the checks of the case. */
export interface IntegrityFinding {
  kind: 'protected' | 'tampering';
  name: string;
  /** What is wrong. Undefined if nothing is. */
  problem: string | undefined;
}

/** Returns the finding as a validation, so that readers of the record see it with the others. */
export function integrityValidation(
  { kind, name, problem }: IntegrityFinding,
  { index, at }: { index: number; at: number },
): Validation {
  const passed = problem === undefined;
  return {
    id: `validation-${index}`,
    index,
    name,
    kind,
    status: passed ? 'passed' : 'failed',
    startedAt: at,
    durationMs: 0,
    exitCode: passed ? 0 : 1,
    truncated: false,
    ...(!passed && { message: problem }),
  };
}
