import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { workForValidator } from '../../bounds/grading.ts';
import type { RunOptions, RunResult } from './api.ts';
import type { Host } from './host.ts';

/**
 * Runs a program of the work, by way of Offsite: as a user, or in a sandbox, that cannot reach this process.
 * Rejects where it cannot be started.
 */
export async function runWork(
  host: Host,
  command: string,
  args: readonly string[],
  { cwd, env, input, timeout }: RunOptions,
  signal: AbortSignal,
): Promise<RunResult> {
  signal.throwIfAborted();
  // What is undefined is left out of JSON.
  const options = JSON.parse(JSON.stringify({ cwd, env, input, timeout }));
  const result = host.call({ kind: 'run', command, args: args.map(String), options });
  const still = () => void host.call({ kind: 'still' });
  signal.addEventListener('abort', still, { once: true });
  try {
    return (await result) as RunResult;
  } finally {
    signal.removeEventListener('abort', still);
  }
}

/** Runs a program of the validator's own, as its own user. Rejects where it cannot be started. */
export async function runOwn(
  workspace: string,
  command: string,
  args: readonly string[],
  options: RunOptions,
  signal: AbortSignal,
): Promise<RunResult> {
  const child = spawn(command, args, {
    cwd: resolve(workspace, options.cwd ?? '.'),
    env: { ...process.env, ...options.env },
    // The leader of a group, so that all of it can be killed.
    detached: true,
  });
  const end = () => killGroup(child);
  signal.addEventListener('abort', end);
  const deadline = setTimeout(end, options.timeout ?? workForValidator.time.program);
  try {
    return await result(child, options.input ?? '');
  } finally {
    clearTimeout(deadline);
    signal.removeEventListener('abort', end);
  }
}

async function result(child: ChildProcess, input: string): Promise<RunResult> {
  const { stdin, stdout, stderr } = child;
  if (!stdin || !stdout || !stderr) throw new Error('a program was started without pipes');
  const outputs = [keep(stdout), keep(stderr)] as const;
  const closed = new Promise((done) => child.once('close', done));
  // A program may end without reading its input; its exit code says how it ended.
  stdin.on('error', () => stdin.destroy());
  stdin.end(input);
  const exitCode = await new Promise<number>((done, reject) => {
    child.on('error', reject);
    child.on('exit', (code, signal) => done(code ?? 128 + constants.signals[signal ?? 'SIGKILL']));
  });
  killGroup(child);
  const late = setTimeout(() => {
    stdout.destroy();
    stderr.destroy();
  }, workForValidator.time.lateOutput);
  await closed;
  clearTimeout(late);
  const [out, err] = outputs;
  return { exitCode, stdout: out.text(), stderr: err.text(), truncated: out.cut() || err.cut() };
}

/**
 * Keeps the beginning of a stream, and reads all of it: a program whose output nobody takes would stand
 * still.
 */
function keep(stream: Readable): { text(): string; cut(): boolean } {
  const chunks: Buffer[] = [];
  let room = workForValidator.bytes.output;
  let cut = false;
  stream.on('data', (chunk: Buffer) => {
    if (chunk.length > room) cut = true;
    if (room > 0) chunks.push(chunk.subarray(0, room));
    room = Math.max(0, room - chunk.length);
  });
  return { text: () => Buffer.concat(chunks).toString(), cut: () => cut };
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    // Nothing is left of it.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
