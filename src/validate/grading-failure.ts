import type { ExecResult } from '../engine/exec/exec-request.ts';
import type { SandboxedAsk } from './sandboxed/records.ts';

/** The validator did not complete. This is a failure of the grading, not of the agent. */
export interface GradingFailure {
  /**
   * `not-started`: the sandbox does not have the program that runs the validator. `broken`: all others.
   */
  kind: 'not-started' | 'broken';
  message: string;
  /** What the validator printed. Absent if texts are not kept. */
  output?: string | undefined;
  /** The question that a model did not answer, if that is the failure. */
  ask?: SandboxedAsk | undefined;
  /** Whether the question itself is wrong, or asks a model that is not configured or has no budget left. */
  isWrong?: true | undefined;
}

/** What stopped the validator's process. Undefined if it ended by itself. */
export function processFailure(result: ExecResult, timeoutMs: number): GradingFailure | undefined {
  if (result.ended === 'not-started') {
    return { kind: 'not-started', message: `the validator could not be started: ${result.message}` };
  }
  if (result.ended === 'out-of-disk') {
    return {
      kind: 'broken',
      message: 'the validator was stopped because it wrote more than the sandbox allows',
    };
  }
  if (result.ended !== 'exited') {
    return { kind: 'broken', message: `the validator was stopped after ${timeoutMs / 1000} s` };
  }
  return result.oomKilled ? { kind: 'broken', message: 'the validator ran out of memory' } : undefined;
}
