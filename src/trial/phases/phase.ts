import type { Container } from '../../engine/container.ts';
import type { Kit } from '../../validate/tampering/kit.ts';
import type { FreshSandbox } from '../control.ts';
import type { ModelPort } from '../model-port.ts';
import type { TrialModels } from '../models.ts';
import type { PhaseName, TrialResult } from '../result.ts';
import type { TrialParts } from '../run-trial.ts';
import type { TrialSpec } from '../spec.ts';
import type { WorkspaceState } from '../workspace.ts';

/** What a phase is given: the trial, its sandbox, and what earlier phases found. */
export interface PhaseInput {
  spec: TrialSpec;
  parts: TrialParts;
  container: Container;
  /** The workspace before the harness worked in it. */
  before: WorkspaceState;
  /** Another sandbox, in which no harness ran. */
  fresh: FreshSandbox;
  kit: Kit | undefined;
  /** The sandbox's way to what it may reach; undefined where that is nothing. */
  port: ModelPort | undefined;
  /** Undefined where the trial has no model, not even a judge. */
  models: TrialModels | undefined;
  signal: AbortSignal;
  found: Partial<TrialResult>;
}

export interface Phase {
  name: PhaseName;
  /** Returns what it found, which is added to the result; a verdict ends the trial. Throws where it can get none. */
  run(input: PhaseInput): Promise<Partial<TrialResult>>;
}
