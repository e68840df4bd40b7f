import type { Clock } from '../base/clock.ts';
import type { SourceFile } from '../contract/definition.ts';
import type { TrajectoryEntry, Usage } from '../contract/report.ts';
import type { Judgment, Validation } from '../contract/validation.ts';
import type { Container } from '../engine/container.ts';
import type { ExecResult } from '../engine/exec/exec-request.ts';
import type { AskModel } from './judge/judge.ts';
import type { SandboxedAsk } from './sandboxed-records.ts';
import type { WorkSandbox } from './work/work.ts';

export interface ValidatorRequest {
  /** The container that it runs in. No harness ran in it, and it has a copy of the graded workspace. */
  container: Container;
  source: string;
  files: readonly SourceFile[];
  manifest: readonly { index: number; name: string }[];
  capture: boolean;
  /**
   * Absolute folder in the sandbox for the validator and its files. The harness must not be able to know it
   * in advance.
   */
  folder: string;
  workspace: string;
  /** The absolute path of the Node that runs a module. Default: `node` on the PATH. */
  node?: string;
  env: Record<string, string>;
  variables: Record<string, string>;
  trajectory: readonly TrajectoryEntry[];
  finalMessage?: string | undefined;
  usage?: Usage | undefined;
  filesChanged?: readonly string[] | undefined;
  /** The sandbox in which it runs what the agent left. */
  work: WorkSandbox;
  /** Asks a judge model. Undefined if none is configured. */
  judge?: AskModel | undefined;
  clock: Clock;
  timeoutMs: number;
  signal: AbortSignal;
}

export interface ValidatorRun {
  validations: Validation[];
  /** The judgments of the validations, and judgments with other names. */
  judgments: Judgment[];
  failure?: GradingFailure | undefined;
}

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
  const broken = (message: string): GradingFailure => ({ kind: 'broken', message });
  if (result.ended === 'not-started')
    return { kind: 'not-started', message: `the validator could not be started: ${result.message}` };
  if (result.ended === 'out-of-disk')
    return broken('the validator was stopped because it wrote more than the sandbox allows');
  if (result.ended !== 'exited') return broken(`the validator was stopped after ${timeoutMs / 1000} s`);
  return result.oomKilled ? broken('the validator ran out of memory') : undefined;
}
