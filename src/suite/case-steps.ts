import type { CaseNetwork } from './case-network.ts';
import type { CaseOracle, CaseTests, Thresholds } from './case-tests.ts';
import type { Healthcheck, PlacedFile } from './environment-parts.ts';
import type { McpServer } from './mcp-server.ts';

/** What a case says about the agent that works on it. */
export interface CaseAgent {
  /** Name or id of the user that the harness runs as. Undefined for the environment's own. */
  user?: string | undefined;
  /** Tool servers for the harness, besides those of the profile, by name. */
  mcpServers?: Record<string, McpServer> | undefined;
  /** The absolute path of a folder in the sandbox that has skills: folders, each with a `SKILL.md`. */
  skills?: string | undefined;
  /** What it may reach besides its model. Undefined for all that the sandbox permits. */
  network?: CaseNetwork | undefined;
}

/**
 * The steps of a case. All run in one sandbox, one after another; in each, a harness gets an instruction, and
 * tests grade what it left.
 */
export interface CaseSteps {
  /** In order; at least one. */
  list: CaseStep[];
  /**
   * How the rewards of steps become those of the case. `mean`: for each name, the mean over the steps that
   * have rewards; a reward that such a step lacks counts as 0. `final`: the rewards of the last step that
   * ran.
   */
  strategy: 'mean' | 'final';
  /** What the rewards of the case must reach. */
  thresholds: Thresholds;
}

export interface CaseStep {
  /** Unique in the case, without slashes. */
  name: string;
  /** The value of the variable `instruction` in this step. */
  instruction: string;
  /** Absolute folders that are empty when the step begins, except for `files`. */
  emptied: string[];
  /** Put into the sandbox before the step. Relative paths are in the workspace. */
  files: PlacedFile[];
  /** A script among them, relative to the workspace, that the agent's user then runs with bash. */
  setup?: string | undefined;
  /** What must succeed before the harness runs. */
  healthcheck?: Healthcheck | undefined;
  agent: CaseAgent;
  /** The limit of the harness in milliseconds. Undefined for the sandbox's. */
  timeoutMs?: number | undefined;
  /** The next step runs only if their thresholds are reached. */
  tests: CaseTests;
  /** Globs of workspace files to keep after this step. */
  artifacts: string[];
  /** Globs of files that are not kept, even if they match `artifacts`. */
  artifactsExcept?: string[] | undefined;
  /** The author's own way to solve the step. */
  oracle?: CaseOracle | undefined;
}

/** All instructions of a case, for people: each step has its own. */
export function instructionOf(steps: readonly Pick<CaseStep, 'instruction'>[]): string {
  return steps.map(({ instruction }) => instruction).join('\n\n');
}
