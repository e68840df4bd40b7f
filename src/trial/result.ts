import type { Artifact, TrajectoryEntry } from '../contract/report.ts';
import type { Judgment, ReportedValidation } from '../contract/validation.ts';
import type { HarnessEnding, HarnessEvent } from '../harness/runner.ts';
import type { VerifiedStep } from '../validate/verify.ts';

/** The phases of a trial, in order. */
export type PhaseName = 'sandbox' | 'harness' | 'collect' | 'verify' | 'validate';

/** Why a trial has no verdict, or what went wrong on the way to one. */
export interface Cause {
  /** Whose trouble it was. `task` is the case's own scripts. */
  kind: 'task' | 'agent' | 'model' | 'infrastructure' | 'grading';
  phase: PhaseName | 'install' | 'prepare';
  message: string;
  /** What was printed, where that tells more. */
  output?: string | undefined;
}

export interface PhaseTiming {
  name: PhaseName;
  /** Epoch milliseconds. */
  startedAt: number;
  durationMs: number;
}

/** Everything that a trial found. A field is absent where its phase was not reached. */
export interface TrialResult {
  verdict: 'passed' | 'failed' | 'void';
  cause?: Cause | undefined;
  startedAt: number;
  finishedAt: number;
  /** The engine's id of the sandbox container. */
  sandboxId?: string | undefined;
  phases: PhaseTiming[];
  harness?: HarnessEnding | undefined;
  trajectory?: TrajectoryEntry[] | undefined;
  /** What else the harness told. */
  events?: HarnessEvent[] | undefined;
  /** Workspace-relative paths. */
  filesChanged?: string[] | undefined;
  artifacts?: Artifact[] | undefined;
  /** Files that matched but were over the limits on number and size. */
  artifactsOmitted?: string[] | undefined;
  verifySteps?: VerifiedStep[] | undefined;
  validations?: ReportedValidation[] | undefined;
  judgments?: Judgment[] | undefined;
  /** Whether the sandbox could reach a model whose traffic we did not see. */
  modelUnmeasured: boolean;
}
