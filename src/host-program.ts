import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { execa } from 'execa';
import { OffsiteError } from './offsite-error.ts';

export interface HostProgram {
  command: string;
  args: readonly string[];
  /** The purpose of the program, for the error: `install docker.io`. */
  purpose: string;
  env: NodeJS.ProcessEnv;
  deadlineMs: number;
  signal?: AbortSignal;
  cwd?: string;
  hint?: string;
}

const shownLines = 15;

/**
 * Runs a program of the host to its end and returns its output, both streams in one. Its standard input is
 * empty, so it never waits for a person. An exit code other than 0 is an infrastructure error that shows the
 * last lines of the output.
 */
export async function runHostProgram(program: HostProgram): Promise<string> {
  const { command, args, purpose, deadlineMs, signal } = program;
  const result = await execa(command, args, {
    cwd: program.cwd,
    env: program.env,
    extendEnv: false,
    stdin: 'ignore',
    all: true,
    reject: false,
    cancelSignal: signal,
    timeout: deadlineMs,
  });
  signal?.throwIfAborted();
  if (!result.failed) return result.all;
  const how = result.timedOut ? `did not finish within ${deadlineMs / 1000} s` : howItFailed(result);
  const tail = result.all?.trimEnd().split('\n').slice(-shownLines).join('\n');
  throw new OffsiteError(`Could not ${purpose}: ${command} ${how}.${tail ? `\n${tail}` : ''}`, {
    code: 'HOST_PROGRAM_FAILED',
    kind: 'infrastructure',
    hint: program.hint,
    cause: result,
  });
}

function howItFailed(result: { exitCode?: number; signal?: string; originalMessage?: string }): string {
  if (result.exitCode !== undefined) return `exited with ${result.exitCode}`;
  if (result.signal !== undefined) return `was ended by ${result.signal}`;
  return `could not be started (${result.originalMessage})`;
}

/** The environment with the system's program folders on its PATH, which a normal user's PATH may lack. */
export function withSystemPath(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return {
    ...env,
    PATH: [env.PATH, '/usr/sbin', '/sbin', '/usr/bin', '/bin'].filter(Boolean).join(delimiter),
  };
}

/** The first executable of that name on the environment's PATH and in the system's folders. */
export async function findHostProgram(name: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  for (const folder of withSystemPath(env).PATH?.split(delimiter) ?? []) {
    const path = join(folder, name);
    const found = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return path;
  }
  return undefined;
}
