import type { Clock } from '../base/clock.ts';
import type { SourceFile } from '../contract/definition.ts';
import type { TrajectoryEntry, Usage } from '../contract/report.ts';
import type { Judgment, Validation } from '../contract/validation.ts';
import type { Container } from '../engine/container.ts';
import type { GradingFailure } from './grading-failure.ts';
import type { AskModel } from './judge/ask-model.ts';
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
