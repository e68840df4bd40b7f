import type { VerifyStep } from '../contract/report.ts';
import type { Judgment, ReportedValidation } from '../contract/validation.ts';
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
