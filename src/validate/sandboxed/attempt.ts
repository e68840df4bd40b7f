import { AsyncLocalStorage } from 'node:async_hooks';
import { type ChildProcess, spawn } from 'node:child_process';
import { readdir, readFile, realpath } from 'node:fs/promises';
import { constants } from 'node:os';
import { matchesGlob, relative, resolve, sep } from 'node:path';
import type { Readable } from 'node:stream';
import * as util from 'node:util';
import { format, inspect } from 'node:util';
import { validatorRecords, workForValidator } from '../../bounds/grading.ts';
import type { SandboxedText, SandboxedValidation } from '../sandboxed-records.ts';
import type {
  JudgeResult,
  RegisteredValidation,
  RunOptions,
  RunResult,
  TrajectoryCommand,
  ValidationContext,
} from './api.ts';
import { AskFailed, type Host } from './host.ts';

/** Runs one validation until it has a verdict or its deadline passes. */
export async function attempt(
  validation: RegisteredValidation,
  host: Host,
  capture: LogCapture,
): Promise<SandboxedValidation> {
  const logs = new Logs();
  const noted: Noted = { input: undefined, metadata: {} };
  const startedAt = Date.now();
  const started = performance.now();
  const ended = await capture.during(logs, () => verdict(validation, host, noted));
  const { input, metadata } = noted;
  return {
    kind: 'validation',
    name: validation.name,
    startedAt,
    durationMs: Math.round(performance.now() - started),
    ...ended,
    input,
    ...(Object.keys(metadata).length > 0 && { metadata: cut(JSON.stringify(metadata, null, 2)) }),
    logs: [...logs.kept],
    logsCut: logs.cut,
  };
}

interface Noted {
  input: SandboxedText | undefined;
  metadata: Record<string, unknown>;
}

type Ended = Pick<SandboxedValidation, 'status' | 'message' | 'output' | 'error'>;

async function verdict(
  { name, check, timeout }: RegisteredValidation,
  host: Host,
  noted: Noted,
): Promise<Ended> {
  const overdue = new AbortController();
  const late = Promise.withResolvers<Ended>();
  const timer =
    timeout === undefined
      ? undefined
      : setTimeout(() => {
          overdue.abort(new Error(`${name} did not finish before its deadline`));
          late.resolve({ status: 'voided', message: `it did not finish within ${timeout / 1000} s` });
        }, timeout);
  try {
    return await Promise.race([checked(name, check, host, noted, overdue.signal), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

async function checked(
  name: string,
  check: RegisteredValidation['check'],
  host: Host,
  noted: Noted,
  signal: AbortSignal,
): Promise<Ended> {
  try {
    const returned = await check(contextOf(name, host, noted, signal));
    return { status: 'passed', ...(returned !== undefined && { output: textOf(returned) }) };
  } catch (error) {
    const status = error instanceof AskFailed ? 'voided' : 'failed';
    const hasStack = !(error instanceof Error) || error.stack !== undefined;
    return { status, message: cut(messageOf(error)), ...(hasStack && { error: cut(describe(error)) }) };
  }
}

function contextOf(name: string, host: Host, noted: Noted, signal: AbortSignal): ValidationContext {
  const { order } = host;
  const { workspace, variables, finalMessage, usage, filesChanged } = order;
  return {
    workspace,
    variables,
    trajectory: order.trajectory as TrajectoryCommand[],
    finalMessage,
    usage,
    filesChanged,
    signal,
    read: async (path) =>
      order.apart ? ((await host.call({ kind: 'read', path })) as string) : readInside(workspace, path),
    files: async (glob) =>
      matching(
        order.apart ? ((await host.call({ kind: 'files' })) as string[]) : await filesInside(workspace),
        glob,
      ),
    run: (command, args = [], options = {}) =>
      options.as === 'validator'
        ? runOwn(workspace, command, args, options, signal)
        : runWork(host, command, args, options, signal),
    answer: async (request) => {
      const asked = typeof request === 'string' ? { prompt: request } : request;
      refuseLarge(asked.material);
      return (await host.ask(name, 'answer', asked)) as string;
    },
    judge: async (request) => {
      refuseLarge(request.material);
      return (await host.ask(name, 'judge', request)) as JudgeResult;
    },
    log: (...values) => void process.stdout.write(`${format(...values)}\n`),
    input: (value) => {
      noted.input = textOf(value);
    },
    metadata: (values) => void Object.assign(noted.metadata, values),
  };
}

function textOf(value: unknown): SandboxedText {
  if (typeof value === 'string') return { text: cut(value), format: 'text' };
  const json = JSON.stringify(value, null, 2);
  return json === undefined
    ? { text: cut(inspect(value)), format: 'text' }
    : { text: cut(json), format: 'json' };
}

function cut(text: string): string {
  if (text.length <= validatorRecords.bytes.text) return text;
  return text.slice(0, validatorRecords.bytes.text / 2) + text.slice(-validatorRecords.bytes.text / 2);
}

/**
 * Throws if the material exceeds the limit for models. The agent made the material, so too much of it must
 * fail the validation and not leave the trial without a verdict.
 */
function refuseLarge(material: string | Record<string, string> | undefined): void {
  const texts = typeof material === 'string' ? [material] : Object.values(material ?? {});
  const characters = texts.reduce((sum, text) => sum + String(text).length, 0);
  if (characters <= validatorRecords.bytes.material) return;
  throw new Error(
    `the material has ${characters} characters, but the limit is ${validatorRecords.bytes.material}`,
  );
}

/**
 * Reads a file of the workspace. Refuses a file outside the workspace: it is not the agent's work, and it may
 * hold what the validator expects.
 */
async function readInside(workspace: string, path: string): Promise<string> {
  const [root, file] = await Promise.all([realpath(workspace), realpath(resolve(workspace, path))]);
  if (!file.startsWith(`${root}${sep}`)) throw new Error(`${path} leads out of the workspace`);
  return readFile(file, 'utf8');
}

/**
 * Paths of the files below the workspace, sorted, including hidden ones. Links are listed but not followed.
 */
async function filesInside(workspace: string): Promise<string[]> {
  const entries = await readdir(workspace, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(workspace, resolve(entry.parentPath, entry.name)))
    .sort();
}

/** The paths that match a glob. Without a glob, all paths. */
function matching(paths: readonly string[], pattern: string | undefined): string[] {
  return paths.filter((path) => pattern === undefined || matchesGlob(path, pattern));
}

/**
 * The message of a failed check: its error's message. If the error compares two values and its message does
 * not show the difference, the difference is added.
 */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return util.inspect(error);
  const { message } = error;
  if (!('actual' in error && 'expected' in error) || message.includes(title)) return message;
  const { actual, expected } = error;
  // Node generated the message in its short form, which shows both values already.
  if ('generatedMessage' in error && error.generatedMessage === true) return message;
  if (actual === undefined && expected === undefined) return message;
  // `assert.ok` compares with true, which says nothing.
  if ('operator' in error && error.operator === '==' && expected === true) return message;
  return `${message}\n\n${title}\n${difference(actual, expected)}`;
}

/** The heading of a difference, as in Node's own assertions. */
const title = '+ actual - expected';

/** The error with its stack and its causes. */
export function describe(error: unknown): string {
  return util.inspect(error, { depth: 4, maxStringLength: 10_000 });
}

function difference(actual: unknown, expected: unknown): string {
  const actualLines = printed(actual).split('\n');
  const expectedLines = printed(expected).split('\n');
  // The sandbox's own Node may be too old to have `util.diff`.
  const changes: readonly (readonly [number, string])[] =
    typeof util.diff === 'function'
      ? util.diff(actualLines, expectedLines)
      : [
          ...actualLines.map((line) => [1, line] as const),
          ...expectedLines.map((line) => [-1, line] as const),
        ];
  return changes.map(([kind, line]) => `${kind === 0 ? ' ' : kind > 0 ? '+' : '-'} ${line}`).join('\n');
}

function printed(value: unknown): string {
  return util.inspect(value, { depth: 10, sorted: true, maxArrayLength: 200, maxStringLength: 10_000 });
}

/** The text that a validation prints, up to a limit. */
class Logs {
  readonly kept: { at: number; level: string; text: string }[] = [];
  #room = validatorRecords.bytes.logs;
  cut = false;

  keep(level: string, text: string): void {
    if (this.#room > 0) this.kept.push({ at: Date.now(), level, text: text.slice(0, this.#room) });
    if (text.length > this.#room) this.cut = true;
    // An empty line counts too. Otherwise their number would have no limit.
    this.#room = Math.max(0, this.#room - text.length - 1);
  }
}

/**
 * Adds printed text to the logs of the validation that prints it, even if its deadline has passed and the
 * next one runs.
 */
export class LogCapture {
  readonly #running = new AsyncLocalStorage<Logs>();

  /** Captures everything that is written to `stream` from now on. */
  take(stream: NodeJS.WriteStream, level: string): void {
    stream.write = (chunk: unknown, ...rest: unknown[]): boolean => {
      const text = chunk instanceof Uint8Array ? Buffer.from(chunk).toString() : String(chunk);
      this.#running.getStore()?.keep(level, text);
      const callback = rest.find((argument) => typeof argument === 'function');
      callback?.();
      return true;
    };
  }

  during<Result>(logs: Logs, work: () => Result): Result {
    return this.#running.run(logs, work);
  }
}

/**
 * Runs a program of the work through Offsite, as a user or in a sandbox that cannot reach this process.
 * Rejects if the program cannot be started.
 */
async function runWork(
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
async function runOwn(
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
