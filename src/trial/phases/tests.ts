import { programOutput } from '../../bounds/grading.ts';
import type { Judgment, Validation } from '../../contract/validation.ts';
import type { ExecResult } from '../../engine/exec/exec-request.ts';
import { reachesThreshold } from '../../record/failures.ts';
import type { TrialResult } from '../../record/trial-record.ts';
import type { CaseTests, Thresholds } from '../../suite/case-tests.ts';
import type { Rewards } from '../../tasks/harbor/reward.ts';
import { printedTestParsers } from '../../tasks/terminal-bench/printed-tests.ts';
import type { GradingFailure } from '../../validate/grading-failure.ts';
import { capturedText } from '../../validate/record.ts';
import type { ValidatorRun } from '../../validate/validator-request.ts';
import { gradingEnvironment } from '../environment.ts';
import { putTests } from '../put-tests.ts';
import { listed, systemChanges } from '../system-changes.ts';
import { writtenRewards } from '../written-rewards.ts';
import type { PhaseInput } from './phase.ts';

/** What the tests found, and what the agent had changed outside the workspace before they ran. */
export type Tested = { kind: 'ran' } & ValidatorRun & Pick<TrialResult, 'systemChanges'>;

/** Names of paths where agents and tests may write; a change there says nothing about the system. */
const logs = ['/logs/**'];

/**
 * Grades a trial with the tests of its case, in the sandbox that the harness worked in and in which nothing
 * runs any more. Tests that give no reward are a failure of the grading: no reward is not the reward 0.
 */
export async function tested(tests: CaseTests, input: PhaseInput): Promise<Tested> {
  const { container, signal, found } = input;
  const changes = found.systemChanges ?? (await changesOf(input));
  await putTests(container, tests, signal);
  const result = await runTests(tests, input);
  // A process that the tests left must not write a reward while it is read.
  await container.killAll(signal);
  const rewards = await rewardsOf(result, tests, input);
  const ran = { kind: 'ran' as const, systemChanges: changes };
  const failure = failureOf(result, rewards, tests);
  if (failure || rewards.kind === 'none') return { ...ran, validations: [], judgments: [], failure };
  const judgments = judgmentsOf(rewards.rewards, tests.thresholds);
  return { ...ran, validations: [validationOf(result, judgments)], judgments };
}

async function changesOf({
  container,
  kit,
  restored,
  signal,
}: PhaseInput): Promise<TrialResult['systemChanges']> {
  const place = { in: 'same' as const, keep: [], ignore: logs };
  const { kept, unexpected } = await systemChanges(container, {
    ...{ kit, place, signal },
    earlier: restored?.systemPaths,
  });
  return { kept: listed(kept), unexpected: listed(unexpected) };
}

/** Both outputs in one stream, in their order. */
const together = 'exec "$@" 2>&1 < /dev/null';

async function runTests(tests: CaseTests, { container, spec, found, signal }: PhaseInput) {
  // If the harness exceeded its disk limit, the tests get additional space.
  const isFull = found.harness?.ended === 'out-of-disk';
  const result = await container.exec({
    argv: ['/bin/sh', '-c', together, 'sh', ...tests.command],
    env: { ...gradingEnvironment({}, container), ...tests.env },
    cwd: container.workingDir,
    ...(tests.user !== undefined && { user: tests.user }),
    timeoutMs: tests.timeoutMs,
    ...(isFull && { diskBytes: (await container.writtenBytes(signal)) + spec.sandbox.disk }),
    // Results in the middle must not be lost.
    ...(tests.reading.kind === 'printed-tests' && { capBytes: programOutput.bytes.kept }),
    signal,
  });
  signal.throwIfAborted();
  return result;
}

async function rewardsOf(
  { stdout }: ExecResult,
  { reading }: CaseTests,
  { container, signal }: PhaseInput,
): Promise<Rewards> {
  if (reading.kind === 'reward-files') return writtenRewards(container, reading, signal);
  if (stdout.truncated) return { kind: 'none', problem: 'they printed more than is read' };
  const read = printedTestParsers[reading.parser](stdout.text);
  if (read.kind === 'none') return read;
  const passed = [...read.tests.values()].filter((status) => status === 'passed').length;
  return { kind: 'rewards', rewards: new Map([['tests', passed / read.tests.size]]) };
}

/** The exit code of the tests does not count. */
function failureOf(
  result: ExecResult,
  rewards: Rewards,
  { timeoutMs }: CaseTests,
): GradingFailure | undefined {
  const output = result.stdout.text;
  switch (result.ended) {
    case 'not-started':
      return { kind: 'not-started', message: `the tests could not be started: ${result.message}` };
    case 'timed-out':
    case 'canceled':
      return { kind: 'broken', message: `the tests were stopped after ${timeoutMs / 1000} s`, output };
    case 'out-of-disk': {
      const message = 'the tests were stopped because they wrote more than the sandbox allows';
      return { kind: 'broken', message, output };
    }
  }
  if (rewards.kind === 'rewards') return undefined;
  const memory = result.oomKilled ? '; they ran out of memory' : '';
  const message = `the tests gave no reward: ${rewards.problem}${memory} (bash exited with ${result.exitCode})`;
  return { kind: 'broken', message, output };
}

function judgmentsOf(rewards: ReadonlyMap<string, number>, thresholds: Thresholds): Judgment[] {
  const { default: usual, byName } = thresholds;
  return [...rewards].map(([name, score]) => ({
    name,
    evaluator: 'tests',
    score,
    threshold: (Object.hasOwn(byName, name) ? byName[name] : undefined) ?? usual,
  }));
}

/** The run of the tests as a whole, with what it printed. */
function validationOf(
  { stdout, startedAt, finishedAt }: ExecResult,
  judgments: readonly Judgment[],
): Validation {
  const low = judgments.filter((judgment) => !reachesThreshold(judgment));
  const passed = low.length === 0;
  const told = low.map(({ name, score, threshold }) => `${name} is ${score}, below ${threshold}`).join('; ');
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
    ...(!passed && { message: told }),
    logs: [{ index: 0, at: startedAt, level: 'stdout', value: capturedText(stdout.text) }],
  };
}
