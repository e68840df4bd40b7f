/**
 * What a validator imports as `offsite/validator`. This file runs inside the sandbox, beside the validator,
 * in the sandbox's own Node: it imports nothing of Offsite's.
 */

/** What a validation is given. */
export interface ValidationContext {
  /** The absolute path of the workspace, which is also the working folder. */
  workspace: string;
  /** The case's variables; values that are not strings are JSON. */
  variables: Record<string, string>;
  /** The commands the harness ran, in order. */
  trajectory: TrajectoryCommand[];
  /** What the harness said last; undefined where it said nothing, or has no words. */
  finalMessage: string | undefined;
  /**
   * What the harness's model used, as far as it was measured: `inputTokens`, `outputTokens`, `costUsd` and
   * others.
   */
  usage: Record<string, number>;
  /** Paths in the workspace that the harness added, changed or deleted. */
  filesChanged: string[];
  /** Aborts when the validation's deadline has passed. */
  signal: AbortSignal;
  /** The text of a file of the workspace. Throws for one that a link leads out of it. */
  read(path: string): Promise<string>;
  /** Paths of files in the workspace that match a glob, sorted. Default: all. */
  files(glob?: string): Promise<string[]>;
  /** Runs a program in the workspace and waits for it. A program that cannot be started throws. */
  run(command: string, args?: readonly string[], options?: RunOptions): Promise<RunResult>;
  /**
   * Asks a model about the work. Recorded as a call of the validation. Where no model answers, the trial has
   * no verdict.
   */
  answer(request: string | AnswerRequest): Promise<string>;
  /**
   * Has models judge the work by a rubric. Recorded as a judgment; with a threshold, the trial passes only if
   * it is reached.
   */
  judge(request: JudgeRequest): Promise<JudgeResult>;
  /** Adds a line to the validation's logs, as `console.log` does. */
  log(...values: unknown[]): void;
  /** Notes what the validation looked at: the record's `input`. */
  input(value: unknown): void;
  /** Adds to the record's `metadata`. */
  metadata(values: Record<string, unknown>): void;
}

export interface TrajectoryCommand {
  command: string;
  exitCode?: number;
  output?: string;
  /** Epoch milliseconds. */
  startedAtMillis?: number;
  finishedAtMillis?: number;
}

export interface RunOptions {
  /** Relative to the workspace. */
  cwd?: string;
  env?: Record<string, string>;
  input?: string;
  /** Milliseconds; the program and its process group are killed then. Default 60,000. */
  timeout?: number;
  /**
   * `validator`: as the validator's own user, for programs of the validator's. Default: a user that cannot
   * reach the validator.
   */
  as?: 'validator';
}

export interface RunResult {
  /** The signal's number plus 128 where the program was killed. */
  exitCode: number;
  /** Up to 8 MiB; what is beyond is left out, and `truncated` then. */
  stdout: string;
  stderr: string;
  truncated: boolean;
}

export interface AnswerRequest {
  prompt: string;
  /** Texts the prompt speaks of, by name. The model is told that they are data. */
  material?: string | Record<string, string>;
  /** A configured model; the variant's judge where left out. */
  model?: string;
  temperature?: number;
  seed?: number;
}

export interface JudgeRequest {
  /** What is good and what is not. The only text that the judge takes instructions from. */
  rubric: string;
  /** What is judged, by name. The model is told that it is data. */
  material: string | Record<string, string>;
  /** Names the judgment; the validation's name where left out. */
  name?: string;
  /** The score, from 0 to 1, that is enough. */
  threshold?: number;
  /**
   * The words to choose one of, with the score of each, or without any. Left out: the judge gives a score
   * from 0 to 1.
   */
  choices?: readonly string[] | Record<string, number>;
  /** Configured models; the judge model where left out. Each gives its votes. */
  models?: readonly string[];
  /** Votes of each model; 1 where left out. The median score counts, or the word that most chose. */
  votes?: number;
  temperature?: number;
  /** Further votes count up from it. */
  seed?: number;
}

export interface JudgeResult {
  score?: number;
  choice?: string;
  reason: string;
  /** Whether the threshold was reached; undefined without one. */
  passed?: boolean;
  votes: { model: string; score?: number; choice?: string; reason: string }[];
}

export interface ValidationOptions {
  /** Milliseconds. A validation that is not done by then has no verdict; the next one starts. */
  timeout?: number;
}

export type Check = (context: ValidationContext) => unknown;

export interface RegisteredValidation extends ValidationOptions {
  name: string;
  check: Check;
}

/** The validations of the one validator that this process runs, in the order they were declared. */
export const registered: RegisteredValidation[] = [];

/**
 * Declares a named validation. It passes unless `check` throws or rejects; an assertion's message becomes the
 * validation's. What
 * `check` returns is kept as its output, what it prints as its logs. Validations run one after the other; one
 * that fails does not stop the next.
 *
 * @example
 * validate('reports the total', async ({ run }) => {
 *   const { stdout } = await run('python3', ['report.py']);
 *   assert.match(stdout, /total: 42/);
 * });
 */
export function validate(name: string, check: Check): void;
export function validate(name: string, options: ValidationOptions, check: Check): void;
export function validate(name: string, ...rest: [Check] | [ValidationOptions, Check]): void {
  const [options, check] = rest.length === 1 ? [{}, rest[0]] : rest;
  if (registered.some((validation) => validation.name === name)) {
    throw new Error(`two validations are named "${name}"`);
  }
  registered.push({ ...options, name, check });
}
