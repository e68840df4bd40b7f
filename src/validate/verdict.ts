import type { VerifyStep } from '../contract/report.ts';
import type { Judgment, ReportedValidation, Validation } from '../contract/validation.ts';
import { reachesThreshold } from '../record/failures.ts';

export interface Findings {
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
