import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { workForValidator } from '../../bounds/grading.ts';
import type { RunOptions, RunResult } from './api.ts';
import type { Host } from './host.ts';

/**
 * Runs a program of the work through Offsite, as a user or in a sandbox that cannot reach this process.
 * Rejects if the program cannot be started.
 */
export async function runWork(
  host: Host,
  command: string,
  args: readonly string[],
  { cwd, env, input, timeout }: RunOptions,
  signal: AbortSignal,
): Promise<RunResult> {
  signal.throwIfAborted();
  // JSON leaves out undefined values.
  const options = JSON.parse(JSON.stringify({ cwd, env, input, timeout }));
  const result = host.call({ kind: 'run', command, args: args.map(String), options });
  const endWork = () => void host.call({ kind: 'end-work' });
  signal.addEventListener('abort', endWork, { once: true });
  try {
    return (await result) as RunResult;
  } finally {
    signal.removeEventListener('abort', endWork);
  }
}

/**
 * Runs one of the validator's own programs, as the validator's user. Rejects if the program cannot be
 * started.
 */
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
    // Makes the program the leader of a process group, so that the whole group can be killed.
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
  // A program may end without reading its input. Its exit code still says how it ended.
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
 * Keeps the beginning of a stream but reads all of it, because a program blocks if nobody reads its output.
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
    // The group has already ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
