import type { ExecResult } from '../engine/exec/exec-request.ts';

/** The validator itself could not do its work: trouble of the grading, not of the agent. */
export interface GradingTrouble {
  /**
   * `not-started`: the sandbox has not what the validator is to run with. `broken`: doing it again would end
   * the same.
   * `infrastructure`: a judge could not be reached, and may be another time.
   */
  kind: 'not-started' | 'broken' | 'infrastructure';
  message: string;
  /** What the validator printed; absent where its texts are not to be kept. */
  output?: string | undefined;
}

/** The trouble of a validator's process that did not end by itself, if it did not. */
export function processTrouble(result: ExecResult, timeoutMs: number): GradingTrouble | undefined {
  if (result.ended === 'not-started') {
    return { kind: 'not-started', message: `the validator could not be started: ${result.message}` };
  }
  if (result.ended === 'out-of-disk') {
    return { kind: 'broken', message: 'the validator was stopped for writing more than the sandbox may' };
  }
  if (result.ended !== 'exited') {
    return { kind: 'broken', message: `the validator was stopped after ${timeoutMs / 1000} s` };
  }
  return result.oomKilled ? { kind: 'broken', message: 'the validator ran out of memory' } : undefined;
}
