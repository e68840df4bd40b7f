import type { Validation } from '../contract/validation.ts';

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
