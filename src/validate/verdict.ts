import type { VerifyStep } from '../contract/report.ts';
import type { Judgment, ReportedValidation } from '../contract/validation.ts';

export interface Findings {
  verifySteps: readonly VerifyStep[];
  validations: readonly ReportedValidation[];
  judgments: readonly Judgment[];
}

/**
 * `passed` when every verify step exited 0, every validation passed and every judgment with a threshold reached it; `void` when
 * there was nothing to check. The harness's own exit code does not decide.
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

/** Whether a judgment is good enough. One without a threshold always is; one without a score never reaches a threshold. */
export function reachesThreshold({ score, threshold }: Judgment): boolean {
  return threshold === undefined || (score !== undefined && score >= threshold);
}
