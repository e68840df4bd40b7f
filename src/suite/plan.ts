import type { Case, StartRequest } from '../contract/definition.ts';
import type { McpServer, SandboxConfig } from './config-file.ts';
import type { ModelConfig } from './model-config.ts';
import type { Variables } from './variables.ts';

/** A suite file with its configuration, read and checked: the request for the service, and what only this machine needs. */
export interface SuitePlan {
  file: string;
  suite: { id: string; name: string; prompt: PromptSource };
  trials: number;
  cases: PlannedCase[];
  variants: PlannedVariant[];
  /** Models that validators may ask. */
  judges: string[];
}

/** The suite's prompt: its text, or where the service holds it. */
export type PromptSource =
  | { kind: 'text'; text: string }
  | { kind: 'stored'; id: string; channel?: string | undefined; version?: number | undefined };

export interface PlannedCase {
  request: Case;
  /** What of it is not part of the request. */
  local: CaseExtras;
}

/** What a case says that only this machine acts on. */
export interface CaseExtras {
  /** Globs of workspace files to keep. */
  artifacts: string[];
  /** Globs of workspace files that the harness must leave as they are. */
  protected: string[];
  runsIn: 'fresh' | 'same';
  verifyPlace: VerifyPlace;
  onError: 'void' | 'failed';
  /** Messages that a simulated user may send. */
  userTurns: number;
  /** A script that solves the case. */
  solution: string | undefined;
}

/** Where verify runs, and which changes outside the workspace are expected there. */
export interface VerifyPlace {
  /** A fresh sandbox of the trial's image that holds the workspace alone; or the one that the harness worked in. */
  in: 'fresh' | 'same';
  /** Globs of absolute paths whose changes are part of the work. A result lists them. */
  keep: string[];
  /** Globs of absolute paths whose changes do not matter. */
  ignore: string[];
  /** What all other changes in the harness's own sandbox are: shown with the result, or the trial's failure. */
  unexpected: 'show' | 'fail';
}

export const freshVerify: VerifyPlace = { in: 'fresh', keep: [], ignore: [], unexpected: 'show' };

export const noExtras: CaseExtras = {
  artifacts: [],
  protected: [],
  runsIn: 'fresh',
  verifyPlace: freshVerify,
  onError: 'void',
  userTurns: 0,
  solution: undefined,
};

export interface PlannedVariant {
  name: string;
  model: string;
  /** What the configuration says of that model; undefined where it is not there. */
  modelConfig: ModelConfig | undefined;
  harness: string;
  /** Plays the simulated user. */
  userModel: string | undefined;
  profile: Profile;
  sandbox: Sandbox;
  /** What stands for harness and sandbox in the request. */
  credentials: { harnessConnectionId: string; sandboxConnectionId: string };
}

/** A profile with its files read. */
export interface Profile {
  /** Undefined where the variant names none. */
  name: string | undefined;
  install?: string | undefined;
  run?: string | undefined;
  /** Of the harness's CLI, in place of the one its runner pins. */
  version?: string | undefined;
  /** Added to the arguments of the harness's CLI. */
  args: string[];
  env: Record<string, string>;
  files: { path: string; content: Buffer; mode?: number }[];
  mcpServers: Record<string, McpServer>;
  /** Turns of model and tools that the harness may take. */
  maxTurns?: number | undefined;
}

/** A profile of nothing but what is given. */
export function profileOf(parts: Partial<Profile>): Profile {
  return { name: undefined, args: [], env: {}, files: [], mcpServers: {}, ...parts };
}

export interface Sandbox extends SandboxConfig {
  name: string;
}

/** What the agent must remember of its own batch, since a run record's `setup` has no place for it. */
export interface RunDetails extends CaseExtras {
  variables: Variables;
  manifest: { index: number; name: string }[];
  capture: boolean;
  user: { goal: string; prompt: string } | undefined;
}

/** The request that starts the planned batch, once the prompt's text is known. */
export function startRequest(plan: SuitePlan, prompt: string): StartRequest {
  return {
    suite: { id: plan.suite.id, name: plan.suite.name, prompt },
    cases: plan.cases.map(({ request }) => request),
    variants: plan.variants.map(({ model, credentials }) => ({ model, credentials })),
    trials: plan.trials,
    local: true,
  };
}

export function runDetails({ request, local }: PlannedCase): RunDetails {
  return {
    ...local,
    variables: request.variables ?? {},
    manifest: request.validator?.manifest ?? [],
    capture: request.validator?.capture ?? true,
    user: request.user,
  };
}
