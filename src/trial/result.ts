import type { Artifact, TrajectoryEntry, Usage } from '../contract/report.ts';
import type { Judgment, Validation } from '../contract/validation.ts';
import type { ModelAccount } from '../gateway/gateway.ts';
import type { HarnessEnding, HarnessEvent } from '../harness/runner.ts';
import type { VerifiedStep } from '../validate/verify.ts';
import type { SystemChanges } from './system-changes.ts';

/** The phases of a trial, in order. */
export type PhaseName = 'sandbox' | 'harness' | 'collect' | 'verify' | 'validate';

/** Why a trial has no verdict, or what went wrong before it got one. */
export interface Cause {
  /**
   * Who caused it. `task`: the case's own scripts. `harness`: a CLI that failed before it asked any model.
   */
  kind: 'task' | 'agent' | 'harness' | 'model' | 'infrastructure' | 'grading';
  phase: PhaseName | 'install' | 'prepare';
  message: string;
  /** The output, if it adds to the message. */
  output?: string | undefined;
}

export interface PhaseTiming {
  name: PhaseName;
  /** Epoch milliseconds. */
  startedAt: number;
  durationMs: number;
}

/** Everything that a trial found. A field is absent if the trial did not reach its phase. */
export interface TrialResult {
  verdict: 'passed' | 'failed' | 'void';
  cause?: Cause | undefined;
  /** The trial was not run because its variant's harness did not work; `cause` says so. */
  notRun?: true | undefined;
  startedAt: number;
  finishedAt: number;
  /** The engine's id of the sandbox container. */
  sandboxId?: string | undefined;
  /**
   * Limits that the engine could not apply and that the configuration allows to be missing. Absent if there
   * are none.
   */
  sandboxLacks?: string[] | undefined;
  phases: PhaseTiming[];
  harness?: HarnessEnding | undefined;
  /** The commands as the harness reported them. */
  trajectory?: TrajectoryEntry[] | undefined;
  /**
   * False for a harness that can be any program: `trajectory` then holds only the command that started it.
   */
  harnessTellsCommands?: boolean | undefined;
  /**
   * The commands that its model traffic shows. For a harness that reports no commands, this is the only
   * source.
   */
  derivedTrajectory?: TrajectoryEntry[] | undefined;
  /** Set if there were more commands than are kept; absent if all are kept. */
  commandsCut?: true | undefined;
  /** Other events that the harness reported, and what a simulated user said. */
  events?: HarnessEvent[] | undefined;
  finalMessage?: string | undefined;
  /** The number of messages that the harness got. */
  turns?: number | undefined;
  /** The version that the harness itself reports. */
  harnessVersion?: string | undefined;
  /** The harness's own counts, to compare with ours. */
  harnessCounts?: { usage: Usage | undefined; commands: number | undefined } | undefined;
  /** Differences between the harness's counts and ours. */
  disagreements?: string[] | undefined;
  /** The requests to the trial's models, their usage and times. */
  models?: ModelAccount | undefined;
  /** Workspace-relative paths. If there are very many, only the first ones. */
  filesChanged?: string[] | undefined;
  /** How many files changed. If there are very many, how many of them were read. */
  filesChangedCount?: number | undefined;
  artifacts?: Artifact[] | undefined;
  /** Files that matched but exceeded the limits on number and size. */
  artifactsOmitted?: string[] | undefined;
  artifactsOmittedCount?: number | undefined;
  verifySteps?: VerifiedStep[] | undefined;
  /** Whether verify ran in a fresh sandbox or in the harness's own; absent without verify. */
  verifiedIn?: 'fresh' | 'same' | undefined;
  /** The same for the validator. */
  validatedIn?: 'fresh' | 'same' | undefined;
  /** What changed outside the workspace in the sandbox that verify ran in. */
  systemChanges?: SystemChanges | undefined;
  /** The full records. A report may carry less. */
  validations?: Validation[] | undefined;
  judgments?: Judgment[] | undefined;
  /** Whether the sandbox could reach a model without its traffic passing the gateway. */
  modelUnmeasured: boolean;
}
