import type { Artifact, TrajectoryEntry, Usage } from '../contract/report.ts';
import type { Judgment, Validation } from '../contract/validation.ts';
import type { ModelAccount } from '../gateway/gateway.ts';
import type { HarnessEnding, HarnessEvent } from '../harness/runner.ts';
import type { VerifiedStep } from '../validate/verify.ts';
import type { SystemChanges } from './system-changes.ts';

/** The phases of a trial, in order. */
export type PhaseName = 'sandbox' | 'harness' | 'collect' | 'verify' | 'validate';

/** Why a trial has no verdict, or what went wrong on the way to one. */
export interface Cause {
  /**
   * Whose trouble it was. `task` is the case's own scripts; `harness` a CLI that failed before any model was
   * asked.
   */
  kind: 'task' | 'agent' | 'harness' | 'model' | 'infrastructure' | 'grading';
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
  /** It was not run, since the harness of its variant had not worked; the cause says so. */
  notRun?: true | undefined;
  startedAt: number;
  finishedAt: number;
  /** The engine's id of the sandbox container. */
  sandboxId?: string | undefined;
  /**
   * What its sandboxes did without, because their configuration allows it and the engine does not have it;
   * absent where that is nothing.
   */
  sandboxLacks?: string[] | undefined;
  phases: PhaseTiming[];
  harness?: HarnessEnding | undefined;
  /** The commands as the harness told them. */
  trajectory?: TrajectoryEntry[] | undefined;
  /** False of a harness that is any program: its `trajectory` is then what started it. */
  harnessTellsCommands?: boolean | undefined;
  /** The commands as its model traffic shows them: of a harness that tells none itself, all there is. */
  derivedTrajectory?: TrajectoryEntry[] | undefined;
  /** There were more commands than are kept of those that count; absent where all are. */
  commandsCut?: true | undefined;
  /** What else the harness told, and what a simulated user said. */
  events?: HarnessEvent[] | undefined;
  finalMessage?: string | undefined;
  /** Messages that the harness was given. */
  turns?: number | undefined;
  /** As the harness itself says. */
  harnessVersion?: string | undefined;
  /** The harness's own counts, to check ours with. */
  harnessCounts?: { usage: Usage | undefined; commands: number | undefined } | undefined;
  /** Where the harness's counts are not ours. */
  disagreements?: string[] | undefined;
  /** What the trial's models were asked and what that took. */
  models?: ModelAccount | undefined;
  /** Workspace-relative paths; the first ones where there are very many. */
  filesChanged?: string[] | undefined;
  /** How many there were; of very many, how many were read. */
  filesChangedCount?: number | undefined;
  artifacts?: Artifact[] | undefined;
  /** Files that matched but were over the limits on number and size. */
  artifactsOmitted?: string[] | undefined;
  artifactsOmittedCount?: number | undefined;
  verifySteps?: VerifiedStep[] | undefined;
  /** Whether verify ran in a fresh sandbox or in the harness's own; absent where there is no verify. */
  verifiedIn?: 'fresh' | 'same' | undefined;
  /** The same of the validator. */
  validatedIn?: 'fresh' | 'same' | undefined;
  /** What changed outside the workspace where verify ran. */
  systemChanges?: SystemChanges | undefined;
  /** The full records; a report may carry less of them. */
  validations?: Validation[] | undefined;
  judgments?: Judgment[] | undefined;
  /** Whether the sandbox could reach a model whose traffic we did not see. */
  modelUnmeasured: boolean;
}
