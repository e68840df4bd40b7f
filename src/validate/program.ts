import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { PassThrough, type Readable } from 'node:stream';
import pLimit from 'p-limit';
import { startDeadline } from '../base/deadline.ts';
import { LineReader } from '../base/line-reader.ts';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { MiB } from '../bounds/channel.ts';
import { programOutput, workForValidator } from '../bounds/grading.ts';
import type { Validation } from '../contract/validation.ts';
import type { NewEntry } from '../engine/archive/entries.ts';
import type { Container } from '../engine/container.ts';
import type { ExecResult } from '../engine/exec/exec-request.ts';
import { reasonSuffix } from '../record/failures.ts';
import type { TestReport } from './formats/junit.ts';
import { readTestReport } from './formats/test-report.ts';
import { captured, capturedText, matchManifest } from './record.ts';
import { execUser, ownFile, ownFolders, users, validatorFolder } from './validator-folder.ts';
import { processFailure, type ValidatorRequest, type ValidatorRun } from './validator-request.ts';
import { Work } from './work/work.ts';

/**
 * Starts the program $0 if its interpreter $1 exists, and otherwise prints $2. Without this check, the exit
 * code of a missing interpreter, from the kernel or `env`, would look like a failed validation.
 */
const start = `command -v "$1" > /dev/null || { printf %s "$2"; exit; }
mkfifo -m 600 "$OFFSITE_CALLS/requests"
OFFSITE_STDOUT=$(readlink /proc/$$/fd/1) exec "$0"`;

/**
 * In the agent's own sandbox, a program would run with what the agent left there. Only a module can run apart
 * from it.
 */
const notApart =
  'a validator that is a program cannot run the work in the agent’s own sandbox; use a module instead';
const nothing = { validations: [], judgments: [] };

/**
 * Runs a validator with a shebang. It is one validation, which passes if the program exits 0. If the program
 * prints a test report, each test is a validation.
 */
export async function runProgram(request: ValidatorRequest): Promise<ValidatorRun> {
  const { container, folder, source, files, timeoutMs } = request;
  if (request.work.kind === 'apart') return { ...nothing, failure: { kind: 'broken', message: notApart } };
  const program = `${folder}/validator`;
  await container.put(
    [
      ...validatorFolder(folder),
      ...ProgramCalls.files(folder),
      ...files.map(({ path, content }) => ownFile(`${folder}/${path}`, content, 0o750)),
      ownFile(program, source, 0o750),
    ],
    '/',
    request.signal,
  );
  const failed = new AbortController();
  const over = new PassThrough();
  const signal = AbortSignal.any([request.signal, failed.signal]);
  const work = new Work({ ...request, sandbox: request.work, signal });
  await work.begin();
  const calls = new ProgramCalls({ container, folder, signal }, work, (error) => failed.abort(error));
  const late = new AbortController();
  const listening = calls.listen(over, late.signal).catch((error) => failed.abort(error));
  const interpreter = interpreterOf(source);
  const nonce = randomBytes(16).toString('hex');
  const result = await container.exec({
    argv: ['/bin/sh', '-c', start, program, interpreter, nonce],
    user: execUser(users.validator),
    cwd: request.workspace,
    env: { ...request.env, ...ownFolders(folder), ...ProgramCalls.environment(folder, request.env.PATH) },
    capBytes: programOutput.bytes.kept,
    timeoutMs,
    signal,
  });
  over.end();
  using deadline = startDeadline(request.clock, workForValidator.time.lateCalls);
  deadline.reached.then(() => late.abort());
  await listening;
  const { reason } = failed.signal;
  if (reason instanceof CallsRefused)
    return { ...nothing, failure: { kind: 'broken', message: reason.message } };
  signal.throwIfAborted();
  // No caller waits for the programs that still run.
  failed.abort();
  const output = `${result.stdout.text}${result.stderr.text}`;
  const failure = processFailure(result, timeoutMs);
  if (failure || result.ended !== 'exited') return { ...nothing, failure: failure && { ...failure, output } };
  if (result.stdout.text === nonce) {
    const message = `the validator could not be started: the sandbox has no ${interpreter}`;
    return { ...nothing, failure: { kind: 'not-started', message } };
  }
  return outcome(result, request, output);
}

type Exited = Extract<ExecResult, { ended: 'exited' }>;

async function outcome(
  result: Exited,
  { manifest }: ValidatorRequest,
  output: string,
): Promise<ValidatorRun> {
  const whole = wholeProgram(result, manifest[0]?.name ?? 'validator');
  const report = await readTestReport(result.stdout.text);
  if (!report) {
    const alone = 'a validator with a shebang is one validation, but its manifest also names';
    return run([whole], manifest, output, alone);
  }
  if ('problem' in report) {
    const message = `the validator printed a ${report.format} report that cannot be read: ${report.problem}`;
    return { ...nothing, failure: { kind: 'broken', message, output } };
  }
  const tests = report.tests.map((test) => testValidation(test, result));
  // If the program fails although its tests pass, or reports no tests, its exit code is a validation too.
  const alone = tests.length === 0 || (result.exitCode !== 0 && report.tests.every(({ passed }) => passed));
  const all = alone ? [...tests, { ...whole, name: 'exit code' }] : tests;
  return run(all, manifest, output, 'the validator printed no test for these names in its manifest:');
}

function run(
  validations: readonly Omit<Validation, 'id' | 'index'>[],
  manifest: ValidatorRequest['manifest'],
  output: string,
  lacking: string,
): ValidatorRun {
  const { found, missing } = matchManifest(validations, manifest);
  if (missing.length === 0) return { validations: found, judgments: [] };
  const message = `${lacking} ${missing.join(', ')}`;
  return { validations: found, judgments: [], failure: { kind: 'broken', message, output } };
}

function wholeProgram(
  { exitCode, stdout, stderr, startedAt, finishedAt }: Exited,
  name: string,
): Omit<Validation, 'id' | 'index'> {
  const why = reasonSuffix(stdout.text) || reasonSuffix(stderr.text);
  return {
    name,
    kind: 'program',
    status: exitCode === 0 ? 'passed' : 'failed',
    startedAt,
    durationMs: Math.round(finishedAt - startedAt),
    exitCode,
    truncated: stdout.truncated || stderr.truncated,
    output: capturedText(stdout.text),
    error: capturedText(stderr.text),
    ...(exitCode !== 0 && { message: `the validator exited with ${exitCode}${why}` }),
  };
}

/** Reports seldom say when a test began, so the start time is the program's. */
function testValidation(
  { name, passed, message, durationMs, detail }: Extract<TestReport, { tests: unknown }>['tests'][number],
  { startedAt }: Exited,
): Omit<Validation, 'id' | 'index'> {
  return {
    name,
    kind: 'program',
    status: passed ? 'passed' : 'failed',
    startedAt,
    ...(durationMs !== undefined && { durationMs }),
    exitCode: passed ? 0 : 1,
    ...(message !== undefined && { message: captured(message).text }),
    ...(detail !== undefined && { [passed ? 'output' : 'error']: capturedText(detail) }),
  };
}

/** The program that a shebang names. With `env`, the program that `env` looks up. */
function interpreterOf(source: string): string {
  const words = source.slice(2).split('\n', 1)[0]?.trim().split(/\s+/) ?? [];
  const [program = '', ...rest] = words;
  if (!program.endsWith('/env')) return program;
  return rest.find((word) => !word.startsWith('-') && !word.includes('=')) ?? program;
}

const offsiteRun = readFileSync(new URL('./offsite-run.sh', import.meta.url), 'utf8');

/** Exit code of `offsite-run` if it could not run the program, as with `env`. */
const cannotRun = 127;
/** Exit code of `offsite-run` if it failed itself, as with `env`. */
const cannotCall = 125;

const tooLarge = {
  exitCode: cannotCall,
  stdout: '',
  stderr: `offsite-run: a call may send at most ${workForValidator.bytes.call} bytes of standard input\n`,
};

/**
 * Prints what is written to the pipe $1, once it exists, until standard input ends. `0<>` opens the pipe for
 * reading and writing, so it never reports an end.
 */
const listen = `{ until [ -p "$1" ]; do sleep 0.05 2> /dev/null || sleep 1; done; exec cat 0<> "$1"; } &
cat > /dev/null; kill "$!"`;

/**
 * A validator's calls of `offsite-run` exceed a limit. The validator is broken, because a retry would end the
 * same way.
 */
class CallsRefused extends Error {
  override readonly name = 'CallsRefused';
}

interface CallsRequest {
  container: Container;
  folder: string;
  signal: AbortSignal;
}

/**
 * Lets a validator that is a program run things of the work as another user. The command `offsite-run` writes
 * each call to a folder that only the validator's user may enter, and reads the answer there.
 */
class ProgramCalls {
  readonly #request: CallsRequest;
  readonly #work: Work;
  readonly #onFailure: (error: unknown) => void;
  readonly #limit = pLimit(workForValidator.count.programs);
  readonly #lines = new LineReader(
    (line) => this.#take(line),
    () => undefined,
    workForValidator.bytes.callName,
  );
  /** Bytes of the calls in progress. */
  #held = 0;

  /** @param onFailure called for failures of the engine, and with {@link CallsRefused} */
  constructor(request: CallsRequest, work: Work, onFailure: (error: unknown) => void) {
    this.#request = request;
    this.#work = work;
    this.#onFailure = (error) => {
      this.#limit.clearQueue();
      onFailure(error);
    };
  }

  /** The entries that must be in the validator's folder. */
  static files(folder: string): NewEntry[] {
    return [
      { path: callsOf(folder), folder: true, mode: 0o700, ...users.validator },
      { path: `${folder}/.bin`, folder: true, mode: 0o750, gid: users.validator.gid },
      ownFile(`${folder}/.bin/offsite-run`, offsiteRun, 0o750),
    ];
  }

  /** The environment in which programs find `offsite-run`. */
  static environment(folder: string, path: string | undefined): Record<string, string> {
    return { OFFSITE_CALLS: callsOf(folder), PATH: `${folder}/.bin${path === undefined ? '' : `:${path}`}` };
  }

  /** Answers calls until `stop` ends or `late` aborts. */
  async listen(stop: Readable, late: AbortSignal): Promise<void> {
    const { container, folder, signal } = this.#request;
    await container.exec({
      argv: ['/bin/sh', '-c', listen, 'sh', `${callsOf(folder)}/requests`],
      user: execUser(users.validator),
      cwd: '/',
      stdin: stop,
      capBytes: 0,
      onOutput: (stream, bytes) => {
        if (stream === 'stdout') this.#lines.push(bytes);
      },
      timeoutMs: 2 ** 31 - 1,
      signal: AbortSignal.any([signal, late]),
    });
  }

  #take(name: string): void {
    if (this.#request.signal.aborted || !/^call-\w{10}$/.test(name)) return;
    const call = `${callsOf(this.#request.folder)}/${name}`;
    if (this.#limit.pendingCount < workForValidator.count.waitingCalls)
      this.#limit(() => this.#fulfill(call)).catch(this.#onFailure);
    else this.#onFailure(new CallsRefused('too many calls of offsite-run are waiting'));
  }

  async #fulfill(call: string): Promise<void> {
    using held = new DisposableStack();
    const hold = (size: number) => {
      this.#held += size;
      held.defer(() => {
        this.#held -= size;
      });
      const most = workForValidator.bytes.calls;
      if (this.#held > most) {
        throw new CallsRefused(`the calls of offsite-run in progress are larger than ${most / MiB} MiB`);
      }
    };
    const { container, signal } = this.#request;
    const given = await this.#given(call, hold);
    if (given === 'gone') return;
    const { exitCode, stdout, stderr } = given ? await this.#run(given) : tooLarge;
    const owner = users.validator;
    const answer: NewEntry[] = [
      { path: `${call}/stdout`, content: stdout, mode: 0o600, ...owner },
      { path: `${call}/stderr`, content: stderr, mode: 0o600, ...owner },
    ];
    try {
      await container.put([...answer, { path: `${call}/code`, linkTarget: String(exitCode) }], '/', signal);
    } catch (error) {
      // The validator may have removed the folder meanwhile, so that nobody waits for this.
      if ((await container.kindOf(call, signal)) !== 'nothing') throw error;
    }
  }

  /**
   * The files of a call. Undefined if they are too large: the work may be the reason, so this is not a
   * failure of the engine. `gone` if the validator has removed the call's folder and so does not wait for an
   * answer.
   */
  async #given(
    call: string,
    hold: (size: number) => void,
  ): Promise<Map<string, Buffer> | undefined | 'gone'> {
    const { container, signal } = this.#request;
    const given = new Map<string, Buffer>();
    let left = workForValidator.bytes.call;
    try {
      for await (const { path, size, content } of container.archive(call, signal)) {
        if (path !== 'words' && path !== 'input') continue;
        left -= size;
        if (left < 0) return undefined;
        hold(size);
        given.set(path, Buffer.concat(await Array.fromAsync(content())));
      }
      return given;
    } catch (error) {
      if (error instanceof OffsiteError && error.code === 'ENGINE_NOT_FOUND') return 'gone';
      throw error;
    }
  }

  async #run(given: ReadonlyMap<string, Buffer>) {
    const [cwd = '/', command = '', ...args] = String(given.get('words') ?? '')
      .split('\0')
      .slice(0, -1);
    try {
      // Only the validator's own timeout ends it. An author who wants less uses the program `timeout`.
      const options = { cwd, timeout: Number.MAX_SAFE_INTEGER };
      return await this.#work.run({ command, args, options, input: given.get('input') });
    } catch (error) {
      if (error instanceof OffsiteError) throw error;
      return { exitCode: cannotRun, stdout: '', stderr: `offsite-run: ${messageOf(error)}\n` };
    }
  }
}

function callsOf(folder: string): string {
  return `${folder}/.calls`;
}
