/**
 * Runs a validator module inside the sandbox: reads its order from stdin, prints a record for each validation. A record is a line of
 * its own that begins with the order's nonce, which nothing else in the sandbox has seen.
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { format, inspect } from 'node:util';
import {
  type RegisteredValidation,
  type RunOptions,
  type RunResult,
  registered,
  type TrajectoryCommand,
} from './api.ts';
import type { SandboxedOrder, SandboxedRecord } from './records.ts';

const order = JSON.parse(await text(process.stdin)) as SandboxedOrder;
/** Characters of logs that are kept of each validation; what comes first tells most. */
const logRoom = 256 * 1024;
const logs = { kept: [] as { at: number; level: string; text: string }[], room: logRoom, cut: false };

const writeRecord = process.stdout.write.bind(process.stdout);
process.chdir(order.workspace);
captureWrites(process.stdout, 'stdout');
captureWrites(process.stderr, 'stderr');

try {
  await import(order.validator);
} catch (error) {
  await print({ kind: 'broken', message: describe(error) });
  process.exit(1);
}
for (const validation of registered) await print(await judge(validation));
await print({ kind: 'end' });
process.exit(0);

async function judge(validation: RegisteredValidation): Promise<SandboxedRecord> {
  Object.assign(logs, { kept: [], room: logRoom, cut: false });
  const startedAt = Date.now();
  const started = performance.now();
  const ended = await attempt(validation);
  return {
    kind: 'validation',
    name: validation.name,
    startedAt,
    durationMs: Math.round(performance.now() - started),
    ...ended,
    logs: logs.kept,
    logsCut: logs.cut,
  };
}

async function attempt({ check }: RegisteredValidation) {
  try {
    const returned = await check({
      workspace: order.workspace,
      variables: order.variables,
      trajectory: order.trajectory as TrajectoryCommand[],
      run,
      log: (...values) => void process.stdout.write(`${format(...values)}\n`),
    });
    return { passed: true, output: returned === undefined ? undefined : printable(returned) };
  } catch (error) {
    return { passed: false, message: messageOf(error), error: describe(error) };
  }
}

function run(command: string, args: readonly string[] = [], options: RunOptions = {}): Promise<RunResult> {
  const { promise, resolve: done, reject } = Promise.withResolvers<RunResult>();
  const child = spawn(command, args, {
    cwd: resolve(order.workspace, options.cwd ?? '.'),
    env: { ...process.env, ...options.env },
    timeout: options.timeout ?? 60_000,
    killSignal: 'SIGKILL',
  });
  const outputs = Promise.all([text(child.stdout), text(child.stderr)]);
  child.on('error', reject);
  // A program may end without reading its input; its exit code says how it ended.
  child.stdin.on('error', () => child.stdin.destroy());
  child.stdin.end(options.input ?? '');
  child.on('close', async (code, signal) => {
    const [stdout, stderr] = await outputs;
    done({ exitCode: code ?? 128 + constants.signals[signal ?? 'SIGKILL'], stdout, stderr });
  });
  return promise;
}

/** What the validator prints belongs to the validation that runs; records go out by the stream's own `write`. */
function captureWrites(stream: NodeJS.WriteStream, level: string): void {
  stream.write = (chunk: unknown, ...rest: unknown[]): boolean => {
    keepLog(level, chunk instanceof Uint8Array ? Buffer.from(chunk).toString() : String(chunk));
    const callback = rest.find((argument) => typeof argument === 'function');
    callback?.();
    return true;
  };
}

function keepLog(level: string, text: string): void {
  if (logs.room > 0) logs.kept.push({ at: Date.now(), level, text: text.slice(0, logs.room) });
  if (text.length > logs.room) logs.cut = true;
  // An empty line takes room too, or there could be any number of them.
  logs.room = Math.max(0, logs.room - text.length - 1);
}

function print(record: SandboxedRecord): Promise<void> {
  const { promise, resolve: written } = Promise.withResolvers<void>();
  writeRecord(`\n${order.nonce} ${JSON.stringify(record)}\n`, () => written());
  return promise;
}

function printable(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? inspect(value));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : inspect(error);
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : inspect(error);
}
