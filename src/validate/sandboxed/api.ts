/**
 * What a validator imports as `offsite/validator`. This file runs inside the sandbox, beside the validator, in the sandbox's own
 * Node: it imports nothing of Offsite's.
 */

/** What a validation is given. */
export interface ValidationContext {
  /** The absolute path of the workspace, which is also the working folder. */
  workspace: string;
  /** The case's variables; values that are not strings are JSON. */
  variables: Record<string, string>;
  /** The commands the harness ran, in order. */
  trajectory: TrajectoryCommand[];
  /** Runs a program in the workspace and waits for it. A program that cannot be started throws. */
  run(command: string, args?: readonly string[], options?: RunOptions): Promise<RunResult>;
  /** Adds a line to the validation's logs, as `console.log` does. */
  log(...values: unknown[]): void;
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
  /** Milliseconds; the program is killed then. Default 60,000. */
  timeout?: number;
}

export interface RunResult {
  /** The signal's number plus 128 where the program was killed. */
  exitCode: number;
  stdout: string;
  stderr: string;
}

export interface RegisteredValidation {
  name: string;
  check(context: ValidationContext): unknown;
}

/** The validations of the one validator that this process runs, in the order they were declared. */
export const registered: RegisteredValidation[] = [];

/**
 * Declares a named validation. It passes unless `check` throws or rejects; an assertion's message becomes the validation's. What
 * `check` returns is kept as its output, what it prints as its logs. Validations run one after the other; one that fails does not
 * stop the next.
 *
 * @example
 * validate('reports the total', async ({ run }) => {
 *   const { stdout } = await run('python3', ['report.py']);
 *   assert.match(stdout, /total: 42/);
 * });
 */
export function validate(name: string, check: (context: ValidationContext) => unknown): void {
  if (registered.some((validation) => validation.name === name)) {
    throw new Error(`two validations are named "${name}"`);
  }
  registered.push({ name, check });
}
