import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { execa } from 'execa';
import { systemClock } from './clock.ts';
import { startDeadline } from './deadline.ts';
import { infrastructureError } from './offsite-error.ts';

export interface HostProgram {
  command: string;
  args: readonly string[];
  /** The purpose of the program, for the error: `install docker.io`. */
  purpose: string;
  env: NodeJS.ProcessEnv;
  deadlineMs: number;
  /** Ends it. Ctrl-C of a terminal does not reach it. */
  signal?: AbortSignal | undefined;
  cwd?: string;
  hint?: string;
}

const shownLines = 15;

/** Milliseconds that a program and what it started get to clean up. */
const endingMs = 10_000;

/**
 * Runs a program of the host to its end and returns its output, both streams in one. Its standard input is
 * empty, so it never waits for a person. An exit code other than 0 is an infrastructure error that shows the
 * last lines of the output.
 *
 * It has a process group of its own. So at an abort or the deadline all that it started ends too, and a
 * program that signals its group, as mmdebstrap does when the disk is full, does not end Offsite.
 */
export async function runHostProgram(program: HostProgram): Promise<string> {
  const { command, args, purpose, deadlineMs, signal } = program;
  signal?.throwIfAborted();
  const running = execa(command, args, {
    cwd: program.cwd,
    env: program.env,
    extendEnv: false,
    stdin: 'ignore',
    all: true,
    reject: false,
    detached: true,
  });
  using deadline = startDeadline(systemClock, deadlineMs, signal);
  let last: NodeJS.Timeout | undefined;
  const end = () => {
    signalGroup(running.pid, 'SIGTERM');
    last = setTimeout(() => signalGroup(running.pid, 'SIGKILL'), endingMs);
  };
  deadline.signal.addEventListener('abort', end, { once: true });
  const result = await running;
  deadline.signal.removeEventListener('abort', end);
  clearTimeout(last);
  signal?.throwIfAborted();
  if (!result.failed) return result.all;
  const how = deadline.expired() ? `did not finish within ${deadlineMs / 1000} s` : howItFailed(result);
  const tail = result.all?.trimEnd().split('\n').slice(-shownLines).join('\n');
  throw infrastructureError(
    'HOST_PROGRAM_FAILED',
    `Could not ${purpose}: ${command} ${how}.${tail ? `\n${tail}` : ''}`,
    { hint: program.hint, cause: result },
  );
}

function howItFailed(result: { exitCode?: number; signal?: string; originalMessage?: string }): string {
  if (result.exitCode !== undefined) return `exited with ${result.exitCode}`;
  if (result.signal !== undefined) return `was ended by ${result.signal}`;
  return `could not be started (${result.originalMessage})`;
}

/** Sends a signal to a process group. Its processes may have ended. */
export function signalGroup(leader: number | undefined, name: NodeJS.Signals): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
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

/**
 * Keeps this process's memory small, and the traffic through it cheap. All bytes of sandboxes and models pass
 * through this process, in many short-lived buffers. Call this before any do, and after the program's code is
 * loaded: what that leaves behind is not garbage, and looking for garbage in it takes a fifth of a start.
 */
export function settleHeap(): void {
  keepYoungHeapSmall();
  // If the old generation may grow to several times its live size, it keeps that much of finished trials.
  setFlagsFromString('--optimize-for-size');
  // V8 would start to mark the old generation for every few megabytes of buffers, most of which are garbage
  // by then: 10 times for an answer of 64 MiB, more than half of the time that this process spends on it.
  // Marking the old generation at once, about once per answer, takes 20 ms.
  setFlagsFromString('--no-incremental-marking');
}

/** The part of {@link settleHeap} that must come before the code is loaded: what has grown stays large. */
export function keepYoungHeapSmall(): void {
  // If the young generation may grow, it keeps 100 MB of short-lived buffers.
  setFlagsFromString('--semi-space-growth-factor=1');
}
