import type { ArchiveCopy } from '../../engine/archive/archive-copy.ts';
import type { Kit } from '../../engine/changes/kit.ts';
import type { Container } from '../../engine/container.ts';
import type { PhaseName } from '../../record/cause.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import type { SandboxedAsk } from '../../validate/sandboxed/host.ts';
import type { Carry } from '../../validate/workspace-copy.ts';
import type { AgentUsers } from '../as-user.ts';
import type { GradingSandboxes } from '../grading-sandboxes.ts';
import type { Keeping } from '../left/keep-left.ts';
import type { ModelPort } from '../model-port.ts';
import type { TrialModels } from '../models.ts';
import type { TrialServices } from '../services/trial-services.ts';
import type { TrialSolution, TrialSpec } from '../spec.ts';
import type { PreparedWorkspace } from '../started-sandbox.ts';
import type { TrialParts } from '../trial-parts.ts';

/** What a trial's phases have found so far: the growing result, and values that only later phases need. */
export interface Found extends Partial<TrialRecord> {
  /** What to copy from the workspace to a fresh sandbox. */
  carry?: Carry;
  /**
   * The workspace as it was collected. Only if nothing that grades changes the sandbox, and the workspace is
   * small.
   */
  packed?: ArchiveCopy | undefined;
  /** Protected files that differ from what prepare made. */
  protectedChanged?: readonly string[];
  /** Whether something changed outside the workspace that verify's result depends on. */
  verifyTampered?: boolean;
  /** The validator's question to a model that got no answer, if that is why there is no verdict. */
  failedAsk?: SandboxedAsk;
}

/** A phase's input: the trial, its sandbox, and what earlier phases found. */
export interface PhaseInput {
  /** The spec of the step that runs. A trial without steps is one step. */
  spec: TrialSpec;
  /** The whole trial. */
  whole: TrialSpec;
  step: CurrentStep;
  users: AgentUsers;
  parts: TrialParts;
  container: Container;
  /** The image that the container was made from. */
  imageId: string;
  /** The workspace as prepare left it. */
  prepared: () => Promise<PreparedWorkspace>;
  /** Other sandboxes, in which no harness ran. */
  sandboxes: GradingSandboxes;
  kit: Kit | undefined;
  /** The containers beside the sandbox. Undefined if the case has none. */
  services: TrialServices | undefined;
  /** The program that the environment starts. Undefined for none. */
  startUp: readonly string[] | undefined;
  /** The sandbox's way to models and named hosts. Undefined if it may reach none. */
  port: ModelPort | undefined;
  /** Undefined if the trial has no model, not even a judge. */
  models: TrialModels | undefined;
  signal: AbortSignal;
  found: Found;
  /** Whether an image of the container has all that is in it. */
  isCommittable: boolean;
  /** Keeps what the harness left, to grade it again. Undefined for a control, and for what was kept. */
  keeping?: Keeping | undefined;
  /** What the trial itself had found, if this is a later grading. */
  restored?: Restored | undefined;
}

/** What a restored sandbox no longer shows of a trial whose left state is graded again. */
export interface Restored {
  /** Workspace-relative paths, for workspaces that are too large to compare. */
  filesChanged: readonly string[];
  /** Paths outside the workspace that had changed. */
  systemPaths: readonly string[];
}

export interface CurrentStep {
  /** From 0. */
  index: number;
  isLast: boolean;
  /** Brings an untouched sandbox to where this step's harness began, without the work of earlier steps. */
  reach(container: Container): Promise<void>;
  /**
   * The same, with the author's solution of each step until the end of this one, which `run` runs. Undefined
   * if one has no solution.
   */
  solve:
    | ((
        container: Container,
        run: (solution: TrialSolution, spec: TrialSpec) => Promise<void>,
      ) => Promise<void>)
    | undefined;
}

export interface Phase {
  name: PhaseName;
  /**
   * What the phase finds if it has nothing to do; then `run` is not called. Undefined if it has something to
   * do.
   */
  idle?(input: PhaseInput): Found | undefined;
  /**
   * Returns what the phase found, which is added to the result. A verdict ends the trial. Throws if the phase
   * fails.
   */
  run(input: PhaseInput): Promise<Found>;
}
