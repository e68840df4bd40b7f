import type { Validation } from '../contract/validation.ts';

/** A check of the trial's own, beside those of its case. */
export interface IntegrityFinding {
  kind: 'protected' | 'tampering';
  name: string;
  /** What was found; undefined where all is well. */
  problem: string | undefined;
}

/** The finding as a validation, so that every reader of the record sees it among the others. */
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
