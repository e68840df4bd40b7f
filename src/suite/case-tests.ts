import type { AgentSource } from './agent-source.ts';
import type { AnswerPart } from './answer-lines.ts';
import type { CaseNetwork } from './case-network.ts';
import type { CaseEnvironment, PlacedFile } from './environment.ts';
import type { StepSource } from './suite-file.ts';
import type { testParsers } from './tasks-source.ts';
import type { TestsSource } from './tests-source.ts';

/**
 * Tests that grade a case after the agent's end, in place of verify and validator. Tasks in the formats of
 * other projects have them.
 */
export interface CaseTests {
  /** Absolute paths. No agent sees them. */
  files: PlacedFile[];
  /** Absolute folders that hold nothing but `files` when the tests begin, whatever the agent left there. */
  emptied: string[];
  command: string[];
  env: Record<string, string>;
  /** Undefined for the sandbox's own. */
  user?: string | undefined;
  /** Milliseconds. */
  timeoutMs: number;
  /** How their outcome is read. */
  reading: TestReading;
  thresholds: Thresholds;
  /** Run in the sandbox after the agent's end, before anything is collected, in order. */
  collect?: CollectCommand[] | undefined;
  /** Undefined: they run in the agent's own sandbox. */
  fresh?: FreshTests | undefined;
  /** What they may reach. Undefined for what the sandbox permits to any tests. */
  network?: CaseNetwork | undefined;
}

/**
 * A command that writes to files what is only in the sandbox's memory. If it fails, the trial gets a note.
 */
export type CollectCommand = Omit<NonNullable<TestsSource['collect']>[number], 'timeout'> & {
  timeoutMs: number;
};

/** Tests that run in a sandbox in which no agent ran. */
export interface FreshTests {
  /** Its environment. Undefined for that of the case. */
  environment: CaseEnvironment | undefined;
  /** What it gets from the agent's sandbox, at the same paths. */
  brought: BroughtArtifacts | BroughtWorkspace;
}

export interface BroughtArtifacts {
  kind: 'artifacts';
  artifacts: CarriedArtifact[];
  /** Absolute folders into which an artifact brings nothing, unless it is one of them or lies in one. */
  sealed: string[];
}

/** The agent's workspace, without its git repository and without the files of the test patch. */
export interface BroughtWorkspace {
  kind: 'workspace';
  /** As `git apply` takes it. */
  testPatch: string;
  /** The commit that the files of the test patch are taken from. */
  base: string;
  /** Names of files that stay as they are in the image. */
  restored: string[];
}

export interface CarriedArtifact {
  /** The absolute path of a file or folder. */
  path: string;
  /** Globs of what is left out: of names at any depth, or of paths below the folder. */
  exclude: string[];
}

export type TestReading =
  /** Absolute paths of files that the tests write: an object of numbers in JSON, or one number. */
  | { kind: 'reward-files'; json: string; text: string }
  /**
   * Tests with names. The results are read from what the tests print, or from a report at an absolute path.
   */
  | {
      kind: 'named-tests';
      parser: (typeof testParsers)[number];
      report: string;
      failToPass: string[];
      passToPass: string[];
    }
  /** What the tests print. The share of those that passed is the reward `tests`. */
  | { kind: 'printed-tests'; parser: 'pytest' | 'swebench' };

/** What rewards must reach for a case to pass. */
export interface Thresholds {
  /** For each reward, if none of them has a threshold of its own. Undefined: any number passes. */
  default?: number | undefined;
  byName: Record<string, number>;
  /** Whether a missing reward that `byName` names is below its threshold. Default: it is ignored. */
  required?: boolean | undefined;
}

/**
 * The thresholds of a file: one for all rewards, or thresholds by name. Tests that give no reward of these
 * names need 1 for each.
 */
export function thresholdsOf(threshold: number | Record<string, number> = 1): Thresholds {
  return typeof threshold === 'number'
    ? { default: threshold, byName: {} }
    : { default: 1, byName: threshold };
}

/** The author's own way to solve a case: a command, and the files that it needs. */
export interface CaseOracle {
  /** Absolute paths. No agent sees them. */
  files: PlacedFile[];
  command: string[];
  env: Record<string, string>;
}

/** A file that grades or solves a case, by its content. Agents must not find it in their sandboxes. */
export interface Answer {
  /** What it is, for people: `the solution`, `tests/expected.txt of the tests`. */
  name: string;
  size: number;
  sha256: string;
  /** Whether it is the suite file, or belongs to another case: an edit of another case changes it. */
  ofSuite?: true | undefined;
  /** The ids that it has in git, in repositories of SHA-1 and of SHA-256. */
  blobs: string[];
  /** By what its text is found in a larger file, or with other blanks. */
  parts?: AnswerPart[] | undefined;
}

/** What a case says about the agent that works on it. */
export type CaseAgent = Omit<AgentSource, 'hosts'> & {
  /** What it may reach besides its model. Undefined for all that the sandbox permits. */
  network?: CaseNetwork | undefined;
};

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

export type CaseStep = Pick<StepSource, 'name' | 'setup' | 'healthcheck' | 'artifactsExcept'> & {
  /** The value of the variable `instruction` in this step. */
  instruction: string;
  /** Absolute folders that are empty when the step begins, except for `files`. */
  emptied: string[];
  /** Put into the sandbox before the step. Relative paths are in the workspace. */
  files: PlacedFile[];
  agent: CaseAgent;
  /** The limit of the harness in milliseconds. Undefined for the sandbox's. */
  timeoutMs?: number | undefined;
  /** The next step runs only if their thresholds are reached. */
  tests: CaseTests;
  /** Globs of workspace files to keep after this step. */
  artifacts: string[];
  /** The author's own way to solve the step. */
  oracle?: CaseOracle | undefined;
};

/** All instructions of a case, for people: each step has its own. */
export function instructionOf(steps: readonly Pick<CaseStep, 'instruction'>[]): string {
  return steps.map(({ instruction }) => instruction).join('\n\n');
}
