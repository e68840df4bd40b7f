import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import type { RunOptions, RunResult } from './api.ts';
import type { SandboxedOrder } from './records.ts';

/** Bytes kept of each output of a program. */
const outputRoom = 8 * 1024 ** 2;
/** Milliseconds in which the output of a program that has ended may still come; what it left behind may hold it open for ever. */
const lateOutputMs = 2_000;

/**
 * Gives the workspace to the user that `run` starts programs as: they are the graded agent's, and one that ran as the validator itself
 * could read its memory, its files and what it expects.
 */
export function giveWorkspace({ runAs, workspace }: SandboxedOrder): void {
  if (runAs === undefined) return;
  const { status, stderr, error } = spawnSync('chown', ['-Rh', `${runAs}:${runAs}`, workspace]);
  if (status !== 0) throw new Error(`the workspace could not be given to user ${runAs}: ${error ?? stderr}`);
}

/** Runs a program as the order says. Rejects where it cannot be started. */
export async function run(
  order: SandboxedOrder,
  command: string,
  args: readonly string[],
  options: RunOptions,
  signal: AbortSignal,
): Promise<RunResult> {
  const { runAs, workspace } = order;
  const other = runAs === undefined || options.as === 'validator' ? undefined : { uid: runAs, gid: runAs };
  if (other) for (const word of [command, ...args]) show(order, word);
  const child = spawn(command, args, {
    cwd: resolve(workspace, options.cwd ?? '.'),
    env: { ...process.env, ...(other && { HOME: '/tmp' }), ...options.env },
    // The leader of a group, so that all of it can be killed.
    detached: true,
    ...other,
  });
  const end = () => killGroup(child);
  signal.addEventListener('abort', end);
  const deadline = setTimeout(end, options.timeout ?? 60_000);
  try {
    return await result(child, options.input ?? '');
  } finally {
    clearTimeout(deadline);
    signal.removeEventListener('abort', end);
  }
}

/** Lets the other user read, and start, a file of the validator's that the program is called with; all others stay closed to it. */
function show({ validator }: SandboxedOrder, word: string): void {
  if (!word.startsWith(`${dirname(validator)}/`) || !existsSync(word)) return;
  chmodSync(word, 0o755);
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
  }, lateOutputMs);
  await closed;
  clearTimeout(late);
  const [out, err] = outputs;
  return { exitCode, stdout: out.text(), stderr: err.text(), truncated: out.cut() || err.cut() };
}

/** Keeps the beginning of a stream, and reads all of it: a program whose output nobody takes would stand still. */
function keep(stream: Readable): { text(): string; cut(): boolean } {
  const chunks: Buffer[] = [];
  let room = outputRoom;
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
