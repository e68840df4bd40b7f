import { type Case, type StartRequest, wholeCase } from '../contract/definition.ts';
import type { SuiteCommit } from '../record/suite-commit.ts';
import type { Answer, CaseAgent, CaseOracle, CaseSteps, CaseTests } from './case-tests.ts';
import type { ProfileConfig } from './config-file.ts';
import { type CaseEnvironment, type NamedImage, noEnvironment, type PlannedBuild } from './environment.ts';
import type { McpServer } from './mcp-server.ts';
import type { ModelConfig } from './model-config.ts';
import type { SandboxConfig } from './sandbox-config.ts';

/**
 * A suite file and its configuration after reading and checking: the request for the service, and what only
 * this machine needs.
 */
export interface SuitePlan {
  file: string;
  suite: { id: string; name: string; prompt: PromptSource };
  /** Of the repository that the suite is in. */
  commit?: SuiteCommit | undefined;
  trials: number;
  cases: PlannedCase[];
  /** What grades and solves any of its cases, also those that a person left out. */
  answers?: Answer[] | undefined;
  /** How many cases the suite has, if a person chose some of them. */
  suiteCases?: number | undefined;
  variants: PlannedVariant[];
  /** Models that validators may use. */
  judges: string[];
  /** The address of what started the batch: a run of a CI system. */
  trigger?: string | undefined;
  /** Recorded answers take the place of its models. */
  replay?: PlannedReplay | undefined;
}

/** What a ledger keeps of a plan beside the batch, because lists of batches show it. */
export function planFacts({ suiteCases, replay, commit }: SuitePlan) {
  const answers = !replay ? ('live' as const) : replay.fork ? ('forked' as const) : ('replayed' as const);
  return { answers, suiteCases, commit };
}

/** Which recording of this machine's ledger answers the models of a batch. */
export interface PlannedReplay {
  /** The key of the recorded batch in the ledger. */
  batch: number;
  /** Its id, for people. */
  name: string;
  /**
   * Which requests the configured models answer. `never`: none; a request that is not recorded ends its
   * trial. `missing`: all that are not recorded. `at-end`: these too, but only after all recorded answers
   * were given.
   */
  live: 'never' | 'missing' | 'at-end';
  /** The only trial that is replayed, and how many of its exchanges. */
  fork?: PlannedFork | undefined;
}

export interface PlannedFork {
  /** The key of the recorded trial in the ledger. */
  trial: number;
  /** The trial, for people. */
  name: string;
  at: number;
  /** The recorded harness, if another one takes its place: it gets the recorded answers in their order. */
  fromHarness?: string | undefined;
}

/** The suite's prompt: its text, or its id at the service, whose text is read when the batch is started. */
export type PromptSource =
  | { kind: 'text'; text: string }
  | { kind: 'stored'; id: string; channel?: string | undefined; version?: number | undefined };

/** The text of a plan's prompt; undefined until it is read from the service. */
export function promptOf({ suite: { prompt } }: { suite: Pick<SuitePlan['suite'], 'prompt'> }) {
  return prompt.kind === 'text' ? prompt.text : undefined;
}

/** A case: what the service gets of it, and what only this machine uses. */
export interface PlannedCase {
  request: Case;
  local: LocalCase;
}

interface LocalCase {
  /** Globs of workspace files to keep. */
  artifacts: string[];
  /** Globs of workspace files that are not kept, even if they match `artifacts`. */
  artifactsExcept?: string[] | undefined;
  /** Globs of workspace files that the harness must not change. */
  protected: string[];
  runsIn: 'fresh' | 'same';
  verifyPlace: VerifyPlace;
  onError: 'void' | 'failed';
  /** The maximum number of messages of a simulated user. */
  userTurns: number;
  /** A script that solves the case. */
  solution: string | undefined;
  environment: CaseEnvironment;
  /** What no agent may find in its sandbox. Undefined in a plan that an older Offsite stored. */
  answers?: Answer[] | undefined;
  /** Hashes of the suite's answers that this case gives to its agent. */
  given?: string[] | undefined;
  agent?: CaseAgent | undefined;
  /** In place of verify and validator. */
  tests?: CaseTests | undefined;
  /** In place of one prompt and `tests`. */
  steps?: CaseSteps | undefined;
  /** In place of a solution. */
  oracle?: CaseOracle | undefined;
}

/** The sandbox that verify runs in, and the changes outside the workspace that are expected there. */
export interface VerifyPlace {
  /**
   * `fresh`: a fresh sandbox of the trial's image with only the workspace. `same`: the sandbox that the
   * harness worked in.
   */
  in: 'fresh' | 'same';
  /** Globs of absolute paths whose changes are part of the work. A result lists these changes. */
  keep: string[];
  /** Globs of absolute paths whose changes do not matter. */
  ignore: string[];
  /**
   * What to do with all other changes in the harness's own sandbox: show them with the result, or fail the
   * trial.
   */
  unexpected: 'show' | 'fail';
}

export const freshVerify: VerifyPlace = { in: 'fresh', keep: [], ignore: [], unexpected: 'show' };

export const noExtras: LocalCase = {
  artifacts: [],
  protected: [],
  runsIn: 'fresh',
  verifyPlace: freshVerify,
  onError: 'void',
  userTurns: 0,
  solution: undefined,
  environment: noEnvironment,
};

export interface PlannedVariant {
  name: string;
  model: string;
  /** The model's configuration. Undefined if there is none. */
  modelConfig: ModelConfig | undefined;
  harness: string;
  /** The model that plays the simulated user. */
  userModel: string | undefined;
  profile: Profile;
  sandbox: Sandbox;
  /** The ids of harness and sandbox in the request. */
  credentials: { harnessConnectionId: string; sandboxConnectionId: string };
}

/** A profile with the content of its files. */
export interface Profile
  extends Pick<ProfileConfig, 'stream' | 'trajectory' | 'version' | 'maxTurns' | 'tellDeadline'> {
  /** Undefined if the variant names no profile. */
  name: string | undefined;
  install?: string | undefined;
  run?: string | undefined;
  args: string[];
  env: Record<string, string>;
  files: { path: string; content: Buffer; mode?: number }[];
  mcpServers: Record<string, McpServer>;
}

/** A profile with the given parts and defaults for all others. */
export function profileOf(parts: Partial<Profile>): Profile {
  return { name: undefined, args: [], env: {}, files: [], mcpServers: {}, ...parts };
}

export interface Sandbox extends SandboxConfig {
  name: string;
}

/**
 * The request that starts the planned batch. The specification does not say which fields a service requires,
 * so the request has each one whose value is known.
 *
 * @param by who runs the trials: `local` if they are reported, `platform` if the service runs them
 */
export function startRequest(plan: SuitePlan, by: 'local' | 'platform' = 'local'): StartRequest {
  return {
    suite: { id: plan.suite.id, name: plan.suite.name, prompt: promptOf(plan) ?? '' },
    cases: plan.cases.map(({ request }) => wholeCase(request)),
    variants: plan.variants.map(({ model, credentials }) => ({ model, credentials })),
    trials: plan.trials,
    local: by === 'local',
    ...(plan.trigger !== undefined && { trigger: { url: plan.trigger } }),
  };
}

/**
 * What an environment consists of, for comparisons. Where its files and its repository are, and the lines
 * that name them, are left out: they differ between two clones of the same suite.
 */
export function environmentContent({ services, source, ...environment }: CaseEnvironment) {
  return {
    ...withoutPlaces(environment),
    source: source && { commit: source.rebuilt ?? source.commit, history: source.history },
    services: services?.map((service) => ({ ...withoutPlaces(service), place: undefined })),
  };
}

/** What tests consist of, in the same way. */
export function testsContent(tests: CaseTests): unknown {
  const own = tests.fresh?.environment;
  const fresh = tests.fresh && { ...tests.fresh, environment: own && environmentContent(own) };
  return { ...tests, fresh };
}

/** Where tests run, in the same way. */
export function testsInContent<Tests extends WithEnvironment>(tests: Tests): unknown {
  return { ...tests, environment: environmentContent(tests.environment) };
}

interface WithEnvironment {
  environment: CaseEnvironment;
}

/** What steps consist of, in the same way: as they are planned, or as a trial has them. */
export function stepsContent({
  list,
  ...steps
}: {
  list: readonly { tests: CaseTests; testsIn?: WithEnvironment | undefined }[];
}): unknown {
  return {
    ...steps,
    list: list.map(({ tests, testsIn, ...step }) => ({
      ...step,
      tests: testsContent(tests),
      testsIn: testsIn && testsInContent(testsIn),
    })),
  };
}

function withoutPlaces<Parts extends { image?: NamedImage | undefined; build?: PlannedBuild | undefined }>({
  image,
  build,
  ...rest
}: Parts) {
  return {
    ...rest,
    image: image && { ...image, place: undefined },
    build: build && {
      ...build,
      name: undefined,
      file: undefined,
      place: undefined,
      context: { ...build.context, folder: undefined },
    },
  };
}

/** The builds of all cases, of their services, and of what their tests run in. */
export function buildsOf({ cases }: Pick<SuitePlan, 'cases'>): PlannedBuild[] {
  return cases.flatMap((planned) =>
    environmentsOf(planned).flatMap(({ build, services = [] }) =>
      [build, ...services.map((service) => service.build)].filter((one) => one !== undefined),
    ),
  );
}

/** The environments of a case: its own, and those that its tests run in. */
export function environmentsOf({ local: { environment, tests, steps } }: PlannedCase): CaseEnvironment[] {
  const graded = [tests, ...(steps?.list ?? []).map((step) => step.tests)];
  return [environment, ...graded.flatMap((one) => one?.fresh?.environment ?? [])];
}
