import type { SourceFile } from '../contract/definition.ts';
import type { CaseTests } from '../suite/case-tests.ts';
import type { CaseEnvironment } from '../suite/environment.ts';
import type { ModelConfig } from '../suite/model-config.ts';
import type { Profile, Sandbox, VerifyPlace } from '../suite/plan.ts';
import type { Variables } from '../suite/variables.ts';

/** Everything that one trial needs to know. All texts are expanded. */
export interface TrialSpec {
  batchId: string;
  runId: string;
  ordinal: number;
  caseName: string;
  taskIndex: number;
  prompt: string;
  prepare: string | undefined;
  verify: string | undefined;
  verifyPlace: VerifyPlace;
  validator: ValidatorSpec | undefined;
  /** In place of verify and validator. */
  tests?: CaseTests | undefined;
  variables: Variables;
  /** For verify and validator, if they are not those that prepare and the prompt were given. */
  gradingVariables?: Variables | undefined;
  /** Globs of workspace files to keep. */
  artifacts: string[];
  /** Globs of workspace files that the harness must not change. */
  protected: string[];
  /** The simulated user who talks to the harness. Undefined if the harness gets only the prompt. */
  user: SimulatedUser | undefined;
  /** Models that the validator may call. */
  judges: string[];
  model: string;
  /** Undefined if the configuration does not have that model. */
  modelConfig: ModelConfig | undefined;
  harness: string;
  profile: Profile;
  /** The variant's sandbox with what the case's environment changes in it. */
  sandbox: Sandbox;
  environment: CaseEnvironment;
}

export interface SimulatedUser {
  goal: string;
  prompt: string;
  /** The model that plays the user. */
  model: string;
  /** The maximum number of messages that the user sends. */
  turns: number;
}

export interface ValidatorSpec {
  source: string;
  files: SourceFile[];
  manifest: { index: number; name: string }[];
  /** Whether the texts that grading produces are kept. */
  capture: boolean;
  /**
   * Where the validator runs the work: in a fresh container of the prepared image with a copy of the
   * workspace, or in the container that the harness worked in.
   */
  runsIn: 'fresh' | 'same';
  /** The trial's verdict if the validator cannot run. */
  onError: 'void' | 'failed';
}
