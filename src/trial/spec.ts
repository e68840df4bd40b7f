import type { SourceFile } from '../contract/definition.ts';
import type { Container } from '../engine/container.ts';
import type { Answer, CaseAgent, CaseOracle, CaseStep, CaseSteps, CaseTests } from '../suite/case-tests.ts';
import type { CaseEnvironment, PlacedFile } from '../suite/environment.ts';
import type { ModelConfig } from '../suite/model-config.ts';
import {
  type PlannedReplay,
  type Profile,
  profileOf,
  type Sandbox,
  type VerifyPlace,
} from '../suite/plan.ts';
import { expandVariables, type Variables } from '../suite/variables.ts';
import { shellWord } from '../text/escape.ts';

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
  /** The hosts that `tests` reach by name. */
  testsHosts?: string[] | undefined;
  /**
   * In place of `tests`. Its first step has the `prompt` and the `variables` that are given here: they are in
   * the prepared image.
   */
  steps?: TrialSteps | undefined;
  /** Where fresh tests run. Undefined for the trial's own environment. */
  testsIn?: Pick<TrialSpec, 'environment' | 'sandbox'> | undefined;
  variables: Variables;
  agent?: CaseAgent | undefined;
  /** The variables for verify and validator, if they differ from those of prepare and the prompt. */
  gradingVariables?: Variables | undefined;
  /** Globs of workspace files to keep. */
  artifacts: string[];
  /** Globs of files that are not kept, even if they match `artifacts`. */
  artifactsExcept?: string[] | undefined;
  /** Globs of workspace files that the harness must not change. */
  protected: string[];
  /** The simulated user who talks to the harness. Undefined if the harness gets only the prompt. */
  user: SimulatedUser | undefined;
  /** A control of the grading, if the checks give no verdict. Undefined if the case has none. */
  solution?: TrialSolution | undefined;
  /** Models that the validator may call. */
  judges: string[];
  model: string;
  /** Recorded answers take the place of all its models. */
  replay?: PlannedReplay | undefined;
  /** Undefined if the configuration does not have that model. */
  modelConfig: ModelConfig | undefined;
  harness: string;
  /** The variant's name, which finds its trials in a recording. */
  variant: string;
  profile: Profile;
  /** The variant's sandbox with what the case's environment changes in it. */
  sandbox: Sandbox;
  environment: CaseEnvironment;
  /** What no agent may find in its sandbox. */
  answers?: Answer[] | undefined;
  /** Whether its repository may have no commits that are not in the history of HEAD. */
  hidesLaterCommits?: boolean | undefined;
}

/** The author's own way to solve a case, or a step. No agent's sandbox ever has it. */
export interface TrialSolution {
  /** Absolute paths. */
  files: PlacedFile[];
  /** A script for bash. */
  run: string;
  env: Record<string, string>;
}

export interface TrialSteps extends Omit<CaseSteps, 'list'> {
  list: TrialStep[];
}

/** A step of a trial, with the prompt and the variables that it has in place of the trial's. */
export interface TrialStep extends Omit<CaseStep, 'instruction' | 'oracle'> {
  prompt: string;
  variables: Variables;
  solution?: TrialSolution | undefined;
  /** Where its tests run, if they are fresh. Undefined for the trial's own environment. */
  testsIn?: TrialSpec['testsIn'];
  testsHosts?: string[] | undefined;
  /** In place of the trial's. */
  profile?: Profile | undefined;
  /** What its agent reaches, in place of all that the trial's sandbox permits. */
  reach?: Pick<Sandbox, 'network' | 'hosts'> | undefined;
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

/**
 * A trial as its fresh tests see it. In an environment of their own there is no harness and no profile, and
 * the prepare of the case is not run.
 */
export function testsSpec(spec: TrialSpec): TrialSpec {
  if (!spec.testsIn) return spec;
  return {
    ...spec,
    ...spec.testsIn,
    harness: 'command',
    profile: profileOf({}),
    prepare: undefined,
    prompt: '',
    modelConfig: undefined,
  };
}

/** The solution of a case: a script, or a command with its files. Undefined if it has none. */
export function solutionOf(
  { solution, oracle }: { solution?: string | undefined; oracle?: CaseOracle | undefined },
  variables: Variables,
): TrialSolution | undefined {
  if (oracle) {
    const { files, command, env } = oracle;
    return { files, run: command.map(shellWord).join(' '), env };
  }
  return solution === undefined
    ? undefined
    : { files: [], run: expandVariables(solution, variables, 'keep'), env: {} };
}

/** The trial with the solution in place of its agent. It asks no model. */
export function solvedBy(spec: TrialSpec, { run, env }: TrialSolution): TrialSpec {
  const own = { run, env: { ...spec.profile.env, ...env }, stream: undefined, trajectory: undefined };
  const profile = { ...spec.profile, ...own };
  const none = { model: 'none', modelConfig: undefined, user: undefined };
  // Nothing is hidden from it.
  const open = { answers: undefined, hidesLaterCommits: undefined };
  return { ...spec, profile, harness: 'command', ...none, ...open };
}

/**
 * Brings an untouched sandbox to where a step's harness begins, and has the author's solution of each step
 * run there by `run`.
 */
export type Solve = (
  container: Container,
  run: (solution: TrialSolution, spec: TrialSpec) => Promise<void>,
) => Promise<void>;

/** How a trial without steps is solved. Undefined if nobody says how. */
export function wholeSolution(spec: TrialSpec): Solve | undefined {
  const { solution } = spec;
  return solution && ((_, run) => run(solution, spec));
}
