import type { SourceFile } from '../contract/definition.ts';
import type { ModelConfig } from '../suite/model-config.ts';
import type { Profile, Sandbox } from '../suite/plan.ts';
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
  validator: ValidatorSpec | undefined;
  variables: Variables;
  /** Globs of workspace files to keep. */
  artifacts: string[];
  model: string;
  /** Undefined where the configuration does not know that model. */
  modelConfig: ModelConfig | undefined;
  harness: string;
  profile: Profile;
  sandbox: Sandbox;
}

export interface ValidatorSpec {
  source: string;
  files: SourceFile[];
  manifest: { index: number; name: string }[];
  /** Whether the texts that grading produces are kept. */
  capture: boolean;
}
