import type { SourceFile } from '../contract/definition.ts';
import type { ModelConfig } from '../suite/model-config.ts';
import type { Profile, Sandbox, VerifyPlace } from '../suite/plan.ts';
import type { Variables } from '../suite/variables.ts';

/** Everything that one trial needs to know, texts expanded. */
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
  variables: Variables;
  /** Globs of workspace files to keep. */
  artifacts: string[];
  /** Globs of workspace files that the harness must leave as they are. */
  protected: string[];
  /** Whom the harness works for in a conversation; undefined where the prompt is all it is told. */
  user: SimulatedUser | undefined;
  /** Models that the validator may ask. */
  judges: string[];
  model: string;
  /** Undefined where the configuration does not know that model. */
  modelConfig: ModelConfig | undefined;
  harness: string;
  profile: Profile;
  sandbox: Sandbox;
}

export interface SimulatedUser {
  goal: string;
  prompt: string;
  /** The model that plays them. */
  model: string;
  /** Messages of theirs, at most. */
  turns: number;
}

export interface ValidatorSpec {
  source: string;
  files: SourceFile[];
  manifest: { index: number; name: string }[];
  /** Whether the texts that grading produces are kept. */
  capture: boolean;
  /**
   * A fresh container of the prepared image with the workspace copied in, or the one the harness worked in.
   */
  runsIn: 'fresh' | 'same';
  /** What the trial is when the validator cannot run. */
  onError: 'void' | 'failed';
}
