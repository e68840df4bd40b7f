import { randomBytes } from 'node:crypto';
import { PassThrough } from 'node:stream';
import { startDeadline } from '../base/deadline.ts';
import { programOutput, workForValidator } from '../bounds/grading.ts';
import type { Validation } from '../contract/validation.ts';
import type { ExecResult } from '../engine/exec/exec-request.ts';
import { reasonSuffix } from '../record/failures.ts';
import type { TestReport } from './formats/junit.ts';
import { readTestReport } from './formats/test-report.ts';
import { CallsRefused, ProgramCalls } from './program-calls.ts';
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
  if (failure || result.ended !== 'exited')
    return { validations: [], judgments: [], failure: failure && { ...failure, output } };
  if (result.stdout.text === nonce) {
    const message = `the validator could not be started: the sandbox has no ${interpreter}`;
    return { validations: [], judgments: [], failure: { kind: 'not-started', message } };
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
    return { validations: [], judgments: [], failure: { kind: 'broken', message, output } };
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
    ...(exitCode !== 0 && { message: exitedText(exitCode, stdout.text, stderr.text) }),
  };
}

function exitedText(exitCode: number, stdout: string, stderr: string): string {
  const why = reasonSuffix(stdout) || reasonSuffix(stderr);
  return `the validator exited with ${exitCode}${why}`;
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
