import { programOutput } from '../../bounds/grading.ts';
import type { Judgment, Validation } from '../../contract/validation.ts';
import type { Container } from '../../engine/container.ts';
import type { ExecResult } from '../../engine/exec/exec-request.ts';
import type { HostConnection } from '../../gateway/gateway.ts';
import { reachesThreshold } from '../../record/failures.ts';
import type { TrialResult } from '../../record/trial-record.ts';
import type { CaseTests, FreshTests, Thresholds } from '../../suite/case-tests.ts';
import type { Rewards } from '../../tasks/harbor/reward.ts';
import { printedTestParsers } from '../../tasks/terminal-bench/printed-tests.ts';
import type { GradingFailure } from '../../validate/grading-failure.ts';
import { capturedText } from '../../validate/record.ts';
import type { ValidatorRun } from '../../validate/validator-request.ts';
import { bringArtifacts } from '../bring-artifacts.ts';
import { bringWorkspace, ofWorkspace } from '../bring-workspace.ts';
import { gradingEnvironment } from '../environment.ts';
import { putTests } from '../put-tests.ts';
import { type Resolved, resolvedRewards } from '../resolved-rewards.ts';
import { listed, systemChanges } from '../system-changes.ts';
import { openTestsNetwork } from '../tests-network.ts';
import { writtenRewards } from '../written-rewards.ts';
import { largestWorkspace } from './largest-workspace.ts';
import type { PhaseInput } from './phase.ts';

/** `refused`: what the agent left cannot be brought to where the tests run. */
export type Tested =
  | ({
      kind: 'ran';
      /** What the agent had changed outside the workspace, if the tests ran in its sandbox. */
      systemChanges?: TrialResult['systemChanges'];
      /** Absolute paths of what could not be brought to where the tests ran. */
      leftOut?: readonly string[];
    } & TestsRun)
  | { kind: 'refused'; why: string };

/** Names of paths where agents and tests may write; a change there says nothing about the system. */
const logs = ['/logs/**'];

/**
 * Grades a trial with the tests of its case, in the sandbox that the harness worked in and in which nothing
 * runs any more, or in a fresh one. Tests that give no reward are a failure of the grading: no reward is not
 * the reward 0.
 */
export async function tested(tests: CaseTests, input: PhaseInput): Promise<Tested> {
  return tests.fresh ? inFresh(tests, tests.fresh, input) : inSame(tests, input);
}

async function inSame(tests: CaseTests, input: PhaseInput): Promise<Tested> {
  const { container, found, signal } = input;
  const systemChanges = found.systemChanges ?? (await changesOf(input));
  // If the harness exceeded its disk limit, the tests get additional space.
  const isFull = found.harness?.ended === 'out-of-disk';
  const diskBytes = isFull ? await roomIn(container, input) : undefined;
  return { kind: 'ran', systemChanges, ...(await run(tests, input, { container, diskBytes, signal })) };
}

async function inFresh(tests: CaseTests, fresh: FreshTests, input: PhaseInput): Promise<Tested> {
  const { sandboxes, found, signal } = input;
  const sandbox = await sandboxes.tests.sandbox();
  const { container } = sandbox;
  const maxBytes = await largestWorkspace(input);
  const limits = { maxBytes, signal };
  const brought =
    fresh.brought.kind === 'artifacts'
      ? await bringArtifacts(input.container, container, fresh.brought, limits)
      : await bringWorkspace(input.container, sandbox, fresh.brought, { carry: found.carry, ...limits });
  if (brought.kind === 'refused') return brought;
  // What was brought does not count as written by the tests.
  const diskBytes = await roomIn(container, input);
  const ran = await run(tests, { ...input, port: sandbox.port }, { container, diskBytes, signal });
  return { kind: 'ran', leftOut: brought.leftOut, ...ran };
}

async function roomIn(container: Container, { spec, signal }: PhaseInput): Promise<number> {
  const { disk } = (spec.testsIn ?? spec).sandbox;
  return (await container.writtenBytes(signal)) + disk;
}

interface RunOptions {
  container: Container;
  /** The disk limit meanwhile, if it is not the sandbox's own. */
  diskBytes: number | undefined;
  signal: AbortSignal;
}

interface TestsRun extends ValidatorRun {
  /** To the hosts that they may reach. Undefined if they may reach none. */
  testsConnections?: HostConnection[];
}

async function run(
  tests: CaseTests,
  { spec, parts, port }: Pick<PhaseInput, 'spec' | 'parts' | 'port'>,
  options: RunOptions,
): Promise<TestsRun> {
  const { container, signal } = options;
  await putTests(container, tests, signal);
  const reaches = port && (spec.testsHosts ?? []).length > 0;
  await using network = reaches ? await openTestsNetwork(spec, parts, port) : undefined;
  const result = await runTests(tests, network?.env ?? {}, options);
  const connections = await network?.end();
  // A process that the tests left must not write a reward while it is read.
  await container.killAll(signal);
  // If the tests lost the connection to their hosts, they say nothing about the agent.
  if (reaches) port.relay.lost.throwIfAborted();
  const graded = await gradedBy(tests, result, { container, signal });
  return { ...graded, ...(connections && { testsConnections: connections }) };
}

async function gradedBy(
  tests: CaseTests,
  result: ExecResult,
  { container, signal }: Pick<RunOptions, 'container' | 'signal'>,
): Promise<ValidatorRun> {
  const rewards = await rewardsOf(result, tests, { container, signal });
  const failure = failureOf(result, rewards, tests);
  if (failure || rewards.kind === 'none') return { validations: [], judgments: [], failure };
  const judgments = judgmentsOf(rewards.rewards, tests.thresholds, 'tests');
  const told = 'told' in rewards ? rewards.told : undefined;
  return { validations: [validationOf(result, judgments, told)], judgments, failure: undefined };
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

async function runTests(
  tests: CaseTests,
  env: Record<string, string>,
  { container, diskBytes, signal }: RunOptions,
) {
  const result = await container.exec({
    argv: ['/bin/sh', '-c', together, 'sh', ...tests.command],
    env: {
      ...gradingEnvironment({}, container),
      ...(tests.fresh?.brought.kind === 'workspace' && ofWorkspace),
      ...env,
      ...tests.env,
    },
    cwd: container.workingDir,
    ...(tests.user !== undefined && { user: tests.user }),
    timeoutMs: tests.timeoutMs,
    ...(diskBytes !== undefined && { diskBytes }),
    // Results in the middle must not be lost.
    ...(tests.reading.kind !== 'reward-files' && { capBytes: programOutput.bytes.kept }),
    signal,
  });
  signal.throwIfAborted();
  return result;
}

async function rewardsOf(
  { stdout }: ExecResult,
  { reading }: CaseTests,
  { container, signal }: Pick<PhaseInput, 'container' | 'signal'>,
): Promise<Rewards | Resolved> {
  if (reading.kind === 'reward-files') return writtenRewards(container, reading, signal);
  if (stdout.truncated) return { kind: 'none', problem: 'they printed more than is read' };
  if (reading.kind === 'named-tests') return resolvedRewards(container, reading, stdout.text, signal);
  const read = printedTestParsers[reading.parser](stdout.text);
  if (read.kind === 'none') return read;
  const passed = [...read.tests.values()].filter((status) => status === 'passed').length;
  return { kind: 'rewards', rewards: new Map([['tests', passed / read.tests.size]]) };
}

/** The exit code of the tests does not count. */
function failureOf(
  result: ExecResult,
  rewards: Rewards | Resolved,
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

/** Rewards beside what they must reach. */
export function judgmentsOf(
  rewards: ReadonlyMap<string, number>,
  thresholds: Thresholds,
  evaluator: string,
): Judgment[] {
  const { byName, required = false } = thresholds;
  const missing = required ? Object.keys(byName).filter((name) => !rewards.has(name)) : [];
  return [...[...rewards.keys()], ...missing].map((name) => {
    const [score, threshold] = [rewards.get(name), thresholdOf(name, thresholds)];
    return {
      ...{ name, evaluator },
      ...(score !== undefined && { score }),
      ...(threshold !== undefined && { threshold }),
    };
  });
}

function thresholdOf(name: string, { default: usual, byName }: Thresholds): number | undefined {
  return Object.hasOwn(byName, name) ? byName[name] : usual;
}

/** The run of the tests as a whole, with what it printed. */
function validationOf(
  { stdout, startedAt, finishedAt }: ExecResult,
  judgments: readonly Judgment[],
  told: string | undefined,
): Validation {
  const low = judgments.filter((judgment) => !reachesThreshold(judgment));
  const passed = low.length === 0;
  const why = low.map(({ name, score, threshold }) => `${name} is ${score ?? 'missing'}, below ${threshold}`);
  const message = [...why, ...(told === undefined ? [] : [told])].join('; ');
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
