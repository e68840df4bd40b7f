import type { Clock } from '../clock.ts';
import type { SourceFile } from '../contract/definition.ts';
import type { TrajectoryEntry, Usage } from '../contract/report.ts';
import type { Judgment, Validation } from '../contract/validation.ts';
import type { Container } from '../engine/container.ts';
import type { AskModel } from './judge/ask-model.ts';
import type { GradingTrouble } from './trouble.ts';
import type { WorkSandbox } from './work/work-sandbox.ts';

export interface ValidatorRequest {
  /** Where it runs: one in which no harness ran, with a copy of the graded workspace. */
  container: Container;
  source: string;
  files: readonly SourceFile[];
  manifest: readonly { index: number; name: string }[];
  capture: boolean;
  /**
   * Absolute folder in the sandbox for the validator and its files. To be one that the harness cannot have
   * known.
   */
  folder: string;
  workspace: string;
  env: Record<string, string>;
  variables: Record<string, string>;
  trajectory: readonly TrajectoryEntry[];
  finalMessage?: string | undefined;
  usage?: Usage | undefined;
  filesChanged?: readonly string[] | undefined;
  /** Where it runs what the agent left. */
  work: WorkSandbox;
  /** Asks a judge model; undefined where none is configured. */
  judge?: AskModel | undefined;
  clock: Clock;
  timeoutMs: number;
  signal: AbortSignal;
}

export interface ValidatorRun {
  validations: Validation[];
  /** Those of the validations, and further ones under names of their own. */
  judgments: Judgment[];
  trouble?: GradingTrouble | undefined;
}
