import type { Kit } from '../../engine/changes/kit.ts';
import type { Container } from '../../engine/container.ts';
import type { Carry } from '../../validate/workspace-copy.ts';
import type { GradingSandboxes } from '../grading-sandboxes.ts';
import type { ModelPort } from '../model-port.ts';
import type { TrialModels } from '../models.ts';
import type { PhaseName, TrialResult } from '../result.ts';
import type { TrialSpec } from '../spec.ts';
import type { TrialParts } from '../trial-parts.ts';
import type { WorkspaceState } from '../workspace.ts';

/** What the phases of a trial have found so far: the result that grows, and what only later phases need. */
export interface Found extends Partial<TrialResult> {
  /** What of the workspace is to be carried to a fresh sandbox. */
  carry?: Carry;
  /** Protected files that are not what prepare made them. */
  protectedChanged?: readonly string[];
  /** Whether something outside the workspace was changed that verify's word depends on. */
  verifyTampered?: boolean;
}

/** What a phase is given: the trial, its sandbox, and what earlier phases found. */
export interface PhaseInput {
  spec: TrialSpec;
  parts: TrialParts;
  container: Container;
  /** What it was made from. */
  imageId: string;
  /** Bytes of the files that prepare left in its workspace. */
  preparedBytes: number;
  /** The workspace before the harness worked in it. */
  before: WorkspaceState;
  /** Others, in which no harness ran. */
  sandboxes: GradingSandboxes;
  kit: Kit | undefined;
  /** The sandbox's way to what it may reach; undefined where that is nothing. */
  port: ModelPort | undefined;
  /** Undefined where the trial has no model, not even a judge. */
  models: TrialModels | undefined;
  signal: AbortSignal;
  found: Found;
}

export interface Phase {
  name: PhaseName;
  /**
   * Returns what it found, which is added to the result; a verdict ends the trial. Throws where it can get
   * none.
   */
  run(input: PhaseInput): Promise<Found>;
}
