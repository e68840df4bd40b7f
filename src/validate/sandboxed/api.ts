/**
 * The module that a validator imports as `offsite/validator`. This file runs inside the sandbox, beside the
 * validator, in the sandbox's own Node. It imports nothing else of Offsite.
 */

/** The argument of a validation's `check`. */
export interface ValidationContext {
  /** The absolute path of the workspace, which is also the working folder. */
  workspace: string;
  /** The case's variables; values that are not strings are JSON. */
  variables: Record<string, string>;
  /** The commands that the harness ran, in order. */
  trajectory: TrajectoryCommand[];
  /** The harness's last message. Undefined if it sent none or cannot send any. */
  finalMessage: string | undefined;
  /**
   * The usage of the harness's model, as far as it was measured: `inputTokens`, `outputTokens`, `costUsd` and
   * others.
   */
  usage: Record<string, number>;
  /** Paths in the workspace that the harness added, changed or deleted. */
  filesChanged: string[];
  /** Aborts when the validation's deadline has passed. */
  signal: AbortSignal;
  /** Returns the text of a file in the workspace. Throws if a link leads to a file outside the workspace. */
  read(path: string): Promise<string>;
  /** Returns the paths of the workspace's files that match a glob, sorted. Default: all files. */
  files(glob?: string): Promise<string[]>;
  /** Runs a program in the workspace and waits for it. Throws if the program cannot be started. */
  run(command: string, args?: readonly string[], options?: RunOptions): Promise<RunResult>;
  /**
   * Asks a model about the work. The request is recorded as a call of the validation. If no model answers,
   * the trial has no verdict.
   */
  answer(request: string | AnswerRequest): Promise<string>;
  /**
   * Asks models to judge the work by a rubric. The result is recorded as a judgment. With a threshold, the
   * trial passes only if the judgment reaches it.
   */
  judge(request: JudgeRequest): Promise<JudgeResult>;
  /** Adds a line to the validation's logs, as `console.log` does. */
  log(...values: unknown[]): void;
  /** Records what the validation looked at, as the record's `input`. */
  input(value: unknown): void;
  /** Adds values to the record's `metadata`. */
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
  /** Milliseconds. After this time, the program and its process group are killed. Default: 60,000. */
  timeout?: number;
  /**
   * `validator`: run as the validator's own user, for the validator's own programs. Default: a user that
   * cannot reach the validator.
   */
  as?: 'validator';
}

export interface RunResult {
  /** If the program was killed: 128 plus the number of the signal. */
  exitCode: number;
  /** Up to 8 MiB. The rest is left out, and `truncated` is true. */
  stdout: string;
  stderr: string;
  truncated: boolean;
}

export interface AnswerRequest {
  prompt: string;
  /** Texts that the prompt refers to, by name. The prompt says that they are data. */
  material?: string | Record<string, string>;
  /** A configured model. Default: the variant's judge. */
  model?: string;
  temperature?: number;
  seed?: number;
}

export interface JudgeRequest {
  /** What is good and what is not. The judge takes instructions only from this text. */
  rubric: string;
  /**
   * The texts to judge, by name. The prompt says that they are data. If all are blank, no model is asked: the
   * score is the lowest (except for choices without scores).
   */
  material: string | Record<string, string>;
  /** The judgment's name. Default: the validation's name. */
  name?: string;
  /** The lowest score that passes, from 0 to 1. */
  threshold?: number;
  /**
   * The words to choose from, with a score for each or without scores. Default: the judge gives a score from
   * 0 to 1.
   */
  choices?: readonly string[] | Record<string, number>;
  /** Configured models. Each gives its votes. Default: the judge model. */
  models?: readonly string[];
  /**
   * The number of votes of each model. The median score counts, or the word with the most votes. Default: 1.
   */
  votes?: number;
  temperature?: number;
  /** The seed of the first vote. Each further vote adds 1. */
  seed?: number;
}

export interface JudgeResult {
  score?: number;
  choice?: string;
  reason: string;
  /** Whether the score reached the threshold. Undefined without a threshold. */
  passed?: boolean;
  votes: { model: string; score?: number; choice?: string; reason: string }[];
}

export interface ValidationOptions {
  /** Milliseconds. A validation that does not finish in time has no verdict, and the next one starts. */
  timeout?: number;
}

export type Check = (context: ValidationContext) => unknown;

export interface RegisteredValidation extends ValidationOptions {
  name: string;
  check: Check;
}

/** The validations of the validator that this process runs, in the order of their declaration. */
export const registered: RegisteredValidation[] = [];

/**
 * Declares a named validation. It passes unless `check` throws or rejects. If an assertion fails, its message
 * becomes the validation's message. The return value of `check` is kept as the validation's output, and
 * printed text as its logs. Validations run one after the other. A failed validation does not stop the next
 * one.
 *
 * @example
 * validate('reports the total', async ({ run }) => {
 * const { stdout } = await run('python3', ['report.py']);
 * assert.match(stdout, /total: 42/);
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
