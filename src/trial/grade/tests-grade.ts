import { posix } from 'node:path';
import { OffsiteError } from '../../base/offsite-error.ts';
import { rewards } from '../../bounds/tasks.ts';
import type { Judgment, Validation } from '../../contract/validation.ts';
import type { Container } from '../../engine/container.ts';
import type { ExecResult } from '../../engine/exec/exec-request.ts';
import { reachesThreshold } from '../../record/failures.ts';
import type { CaseTests, TestReading, Thresholds } from '../../suite/case-tests.ts';
import { type Rewards, readRewards } from '../../tasks/harbor/reward.ts';
import {
  logParsers,
  type NamedResult,
  printedTestParsers,
  type ReadLog,
  resolution,
  resultsByName,
} from '../../tasks/swe-bench/log-parsers.ts';
import { junitElements, outcomeOf } from '../../validate/formats/junit.ts';
import { capturedText } from '../../validate/record.ts';
import type { GradingFailure, ValidatorRun } from '../../validate/validator-request.ts';

/**
 * The grade that tests gave: their rewards, each with the threshold that it must reach. Call it when nothing
 * runs in the sandbox. Without a reward, the grading has failed.
 *
 * @param result the run of the tests
 */
export async function gradeOf(
  result: ExecResult,
  tests: CaseTests,
  container: Container,
  signal: AbortSignal,
): Promise<ValidatorRun> {
  const rewards = await rewardsOf(result, tests, container, signal);
  const failure = failureOf(result, rewards, tests);
  if (failure || rewards.kind === 'none') return { validations: [], judgments: [], failure };
  const judgments = judgmentsOf(rewards.rewards, tests.thresholds, 'tests');
  const summary = 'summary' in rewards ? rewards.summary : undefined;
  return { validations: [validationOf(result, judgments, summary)], judgments, failure: undefined };
}

async function rewardsOf(
  { stdout }: ExecResult,
  { reading }: CaseTests,
  container: Container,
  signal: AbortSignal,
): Promise<Rewards | Resolved> {
  if (reading.kind === 'reward-files') return writtenRewards(container, reading, signal);
  if (stdout.truncated) return { kind: 'none', problem: 'they printed too much output' };
  if (reading.kind === 'named-tests') return resolvedRewards(container, reading, stdout.text, signal);
  const read = printedTestParsers[reading.parser](stdout.text);
  if (read.kind === 'none') return read;
  const passed = [...read.results.values()].filter((result) => result === 'passed').length;
  return { kind: 'rewards', rewards: new Map([['tests', passed / read.results.size]]) };
}

/** The exit code of the tests does not count. */
function failureOf(
  result: ExecResult,
  rewards: Rewards | Resolved,
  tests: CaseTests,
): GradingFailure | undefined {
  const output = result.stdout.text;
  switch (result.ended) {
    case 'not-started':
      return { kind: 'not-started', message: `the tests could not be started: ${result.message}` };
    case 'timed-out':
    case 'canceled':
      return { kind: 'broken', message: `the tests were stopped after ${tests.timeoutMs / 1000} s`, output };
    case 'out-of-disk': {
      const message = 'the tests were stopped because they wrote more than the sandbox allows';
      return { kind: 'broken', message, output };
    }
  }
  if (rewards.kind === 'rewards') return undefined;
  const memory = result.oomKilled ? '; they ran out of memory' : '';
  const why = `${rewards.problem}${memory} (${programOf(tests)} exited with ${result.exitCode})${ownPath(result, tests)}${lineEnds(tests)}`;
  return { kind: 'broken', message: `the tests gave no reward: ${why}`, output };
}

/** The name of what runs the tests. */
function programOf({ command }: CaseTests): string {
  return posix.basename(command[0] ?? '');
}

/** Says so if the tests have a PATH of their own, in which a program may be missing. */
function ownPath({ exitCode }: ExecResult, { env }: CaseTests): string {
  return exitCode === 127 && env.PATH !== undefined ? `; their PATH is ${env.PATH}` : '';
}

/** Says so if the script that runs has the line ends of Windows. */
function lineEnds(tests: CaseTests): string {
  const { files, command } = tests;
  const script = files.find((file) => command.includes(file.path) && 'content' in file);
  if (!script || !('content' in script) || !script.content.includes('\r\n')) return '';
  return `; lines of ${script.path} end with CR LF, and ${programOf(tests)} reads the CR as part of a command: save it with LF`;
}

/**
 * Rewards with the thresholds that they must reach. If at least one of them has a threshold of its own, the
 * others only tell more about the work, and need none.
 */
export function judgmentsOf(
  rewards: ReadonlyMap<string, number>,
  thresholds: Thresholds,
  evaluator: string,
): Judgment[] {
  const { default: usual, byName, required = false } = thresholds;
  const own = new Map(Object.entries(byName));
  const isNamed = [...own.keys()].some((name) => rewards.has(name));
  const missing = required ? [...own.keys()].filter((name) => !rewards.has(name)) : [];
  return [...rewards.keys(), ...missing].map((name) => {
    const [score, threshold] = [rewards.get(name), own.get(name) ?? (isNamed ? undefined : usual)];
    return {
      name,
      evaluator,
      ...(score !== undefined && { score }),
      ...(threshold !== undefined && { threshold }),
    };
  });
}

/** The run of the tests as a whole, with what it printed. */
function validationOf(
  { stdout, startedAt, finishedAt }: ExecResult,
  judgments: readonly Judgment[],
  summary: string | undefined,
): Validation {
  const low = judgments.filter((judgment) => !reachesThreshold(judgment));
  const passed = low.length === 0;
  const why = low.map(({ name, score, threshold }) => `${name} is ${score ?? 'missing'}, below ${threshold}`);
  const message = [...why, ...(summary === undefined ? [] : [summary])].join('; ');
  return {
    id: 'validation-0',
    index: 0,
    name: 'tests',
    kind: 'tests',
    status: passed ? 'passed' : 'failed',
    startedAt,
    durationMs: Math.round(finishedAt - startedAt),
    exitCode: passed ? 0 : 1,
    truncated: stdout.truncated,
    ...(!passed && { message }),
    logs: [{ index: 0, at: startedAt, level: 'stdout', value: capturedText(stdout.text) }],
  };
}

type NamedReading = Extract<TestReading, { kind: 'named-tests' }>;

/** The reward, with the tests that count and did not pass. */
type Resolved = Extract<Rewards, { kind: 'rewards' }> & { summary: string };

/**
 * The reward `resolved` of tests with names: 1 if all that count have passed, else 0. Without any result
 * there is no reward. Call it when nothing runs in the sandbox.
 */
async function resolvedRewards(
  container: Container,
  reading: NamedReading,
  output: string,
  signal: AbortSignal,
): Promise<Rewards | Resolved> {
  const read =
    reading.parser === 'junit'
      ? await reported(container, reading.report, signal)
      : logParsers[reading.parser](output);
  if (read.kind === 'none') return read;
  const nameOf = reading.parser === 'junit' ? junitName : (test: string) => test;
  const { resolved, failed, counting } = resolution(reading, (test) => read.results.get(nameOf(test)));
  const shown = failed.slice(0, rewards.count.shownTests).map((test) => JSON.stringify(test));
  const more = failed.length > shown.length ? ` and ${failed.length - shown.length} more` : '';
  return {
    kind: 'rewards',
    rewards: new Map([['resolved', resolved ? 1 : 0]]),
    summary: `${failed.length} of ${counting} tests did not pass: ${shown.join(', ')}${more}`,
  };
}

/** The results of a report in JUnit XML, by class and name. */
async function reported(container: Container, path: string, signal: AbortSignal): Promise<ReadLog> {
  const none = (problem: string) => ({ kind: 'none' as const, problem });
  let content: Buffer | undefined;
  try {
    content = await fileAt(container, path, signal, rewards.bytes.report);
  } catch (error) {
    if (error instanceof NotReadable) return none(error.message);
    throw error;
  }
  if (!content) return none(`the tests wrote no report to ${path}`);
  const read = junitElements(content.toString('utf8'));
  if ('problem' in read) return none(`the report of the tests cannot be read: ${read.problem}`);
  if (read.length === 0) return none('the report of the tests names no test');
  if (read.length > rewards.count.tests) return none('the report of the tests names too many tests');
  const results = read.map((test): [string, NamedResult] => {
    const { problem, skipped } = outcomeOf(test);
    const result = problem ? 'failed' : isSkipped(skipped) ? 'skipped' : 'passed';
    return [`${String(test['@classname'] ?? '')}::${String(test['@name'] ?? '')}`, result];
  });
  return { kind: 'results', results: resultsByName(results) };
}

/** A failure that was expected is written as skipped, and is a pass. */
function isSkipped(skipped: ReturnType<typeof outcomeOf>['skipped']): boolean {
  return skipped !== undefined && skipped['@type'] !== 'pytest.xfail';
}

/**
 * The class and the name that a report has for a test: `tests.test_a.Class::test_b[c]` for the name
 * `tests/test_a.py::Class::test_b[c]`, and `a.Class::test_b` for `test_b (a.Class)`.
 */
function junitName(test: string): string {
  const [, method, className] = /^(\S+) \((\S+)\)$/.exec(test) ?? [];
  if (className !== undefined) return `${className}::${method}`;
  const [, file, inner] = /^(\S+?)\.py::(.+)$/s.exec(test) ?? [];
  if (file === undefined || inner === undefined) return test;
  const bracket = inner.indexOf('[');
  const last = inner.lastIndexOf('::', bracket === -1 ? inner.length : bracket);
  const classes = last === -1 ? '' : `.${inner.slice(0, last).replaceAll('::', '.')}`;
  return `${file.replaceAll('/', '.')}${classes}::${inner.slice(last === -1 ? 0 : last + 2)}`;
}

/**
 * The rewards that tests wrote, or why there are none. Call it when nothing runs in the sandbox. A file is
 * not read through a link: that could lead to something that the agent wrote.
 */
async function writtenRewards(
  container: Container,
  { json, text }: Extract<TestReading, { kind: 'reward-files' }>,
  signal: AbortSignal,
): Promise<Rewards> {
  try {
    return readRewards({
      json: await fileAt(container, json, signal),
      text: await fileAt(container, text, signal),
    });
  } catch (error) {
    if (error instanceof NotReadable) return { kind: 'none', problem: error.message };
    throw error;
  }
}

class NotReadable extends Error {}

/**
 * The content of a file that tests wrote; undefined if there is none. Throws {@link NotReadable} for anything
 * but a file in folders, and for one that is too large.
 */
async function fileAt(
  container: Container,
  path: string,
  signal: AbortSignal,
  maxBytes: number = rewards.bytes.file,
): Promise<Buffer | undefined> {
  const name = posix.basename(path);
  for (let folder = posix.dirname(path); folder !== '/'; folder = posix.dirname(folder)) {
    if ((await container.kindOf(folder, signal)) !== 'folder')
      throw new NotReadable(`after the tests, ${folder} is not a folder`);
  }
  try {
    for await (const { type, content } of container.archive(path, signal, maxBytes)) {
      if (type !== 'file') throw new NotReadable(`${name} is not a regular file`);
      return Buffer.concat(await Array.fromAsync(content()));
    }
  } catch (error) {
    if (!(error instanceof OffsiteError)) throw error;
    if (error.code === 'ENGINE_NOT_FOUND') return undefined;
    if (error.code !== 'ENGINE_TOO_LARGE') throw error;
    throw new NotReadable(`${name} is larger than the limit of ${maxBytes / 1024} KiB`);
  }
  return undefined;
}
