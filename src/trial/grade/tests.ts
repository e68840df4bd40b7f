import { randomBytes } from 'node:crypto';
import { programOutput } from '../../bounds/grading.ts';
import { taskDigests } from '../../bounds/tasks.ts';
import type { Container } from '../../engine/container.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { answerLast, type RelayHandler } from '../../gateway/relay/relay.ts';
import type { HostConnection } from '../../record/model-account.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import type { CaseTests, FreshTests } from '../../suite/case-tests.ts';
import type { ValidatorRun } from '../../validate/validator-request.ts';
import { TrialFailure } from '../blame.ts';
import { largestWorkspace } from '../collect/collect.ts';
import { cachesApart, leftOutOf, systemChanges } from '../collect/system-changes.ts';
import type { OpenRecord, TrialSandbox } from '../phase.ts';
import { gradingEnvironment } from '../prepare/environment.ts';
import { type ModelPort, proxyVariables } from '../prepare/model-port.ts';
import { startProgram } from '../prepare/started-sandbox.ts';
import type { TrialSpec } from '../spec.ts';
import { bringArtifacts, bringWorkspace, emptyFolder, foldersAbove, ofWorkspace } from './bring-workspace.ts';
import { gradeOf } from './tests-grade.ts';

/** `refused`: what the agent left cannot be brought to where the tests run. */
export type Tested =
  | ({
      kind: 'ran';
      /** What the agent had changed outside the workspace, if the tests ran in its sandbox. */
      systemChanges?: TrialRecord['systemChanges'];
      /** Absolute paths of what could not be brought to where the tests ran. */
      leftOut?: readonly string[];
    } & TestsRun)
  | { kind: 'refused'; why: string };

/** Globs of paths where agents and tests may write. A change there says nothing about the system. */
const logs = ['/logs/**'];

/**
 * Grades a trial with the tests of its case, in the sandbox that the harness worked in and in which nothing
 * runs any more, or in a fresh one. Tests that give no reward are a failure of the grading: no reward is not
 * the reward 0.
 */
export async function tested(
  tests: CaseTests,
  spec: TrialSpec,
  sandbox: TrialSandbox,
  found: OpenRecord,
): Promise<Tested> {
  return tests.fresh
    ? inFresh(tests, tests.fresh, spec, sandbox, found)
    : inSame(tests, spec, sandbox, found);
}

async function inSame(
  tests: CaseTests,
  spec: TrialSpec,
  sandbox: TrialSandbox,
  found: OpenRecord,
): Promise<Tested> {
  const { container, signal } = sandbox;
  const systemChanges = found.systemChanges ?? (await changesOf(tests, sandbox));
  await startAgain(spec, sandbox);
  // So that the tests are not stopped for the files of a harness that exceeded its disk limit.
  if (found.harness?.ended === 'out-of-disk') await container.forgiveDisk(signal);
  return { kind: 'ran', systemChanges, ...(await run(tests, spec, sandbox, { container, signal })) };
}

async function inFresh(
  tests: CaseTests,
  fresh: FreshTests,
  spec: TrialSpec,
  agents: TrialSandbox,
  found: OpenRecord,
): Promise<Tested> {
  const { parts, graders, signal } = agents;
  const sandbox = await graders.tests.sandbox();
  const { container, port } = sandbox;
  const maxBytes = await largestWorkspace(spec, agents, found);
  const limits = { maxBytes, signal };
  const brought =
    fresh.brought.kind === 'artifacts'
      ? await bringArtifacts(agents.container, container, fresh.brought, limits)
      : await bringWorkspace(agents.container, sandbox, fresh.brought, {
          carry: found.carry,
          leftOut: leftOutOf(spec),
          ...limits,
        });
  if (brought.kind === 'refused') return brought;
  // What was brought does not count as written by the tests.
  await container.forgiveDisk(signal);
  const ran = await run(tests, spec, { parts, port }, { container, signal });
  return { kind: 'ran', leftOut: brought.leftOut, ...ran };
}

/**
 * Starts the program of the environment again for the tests, because it ended with the agent's processes. If
 * it cannot start in what the agent left, the tests show that.
 */
async function startAgain(spec: TrialSpec, { container, startUp, signal }: TrialSandbox): Promise<void> {
  try {
    await startProgram(container, startUp, spec, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof TrialFailure)) throw error;
  }
}

interface RunOptions {
  container: Container;
  signal: AbortSignal;
}

interface TestsRun extends ValidatorRun {
  /** The connections to the hosts that the tests may reach. Undefined if they may reach none. */
  testsConnections?: HostConnection[];
}

async function run(
  tests: CaseTests,
  spec: TrialSpec,
  { parts, port }: Pick<TrialSandbox, 'parts' | 'port'>,
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
  const graded = await gradeOf(result, tests, container, signal);
  return { ...graded, ...(connections && { testsConnections: connections }) };
}

/**
 * What had changed before the tests run, except in the folders that the tests replace: an earlier step leaves
 * these empty.
 */
async function changesOf(
  { emptied }: CaseTests,
  { container, kit, restored, signal }: TrialSandbox,
): Promise<TrialRecord['systemChanges']> {
  const place = { in: 'same' as const, keep: [], ignore: logs };
  const { kept, unexpected } = await systemChanges(container, {
    kit,
    place,
    signal,
    earlier: restored?.systemPaths,
  });
  const isReplaced = (path: string) =>
    emptied.some((folder) => path === folder || path.startsWith(`${folder}/`));
  return cachesApart({ kept, unexpected: unexpected.filter((path) => !isReplaced(path)) });
}

/** Both outputs in one stream, in their order. */
const together = 'exec "$@" 2>&1 < /dev/null';

async function runTests(tests: CaseTests, env: Record<string, string>, { container, signal }: RunOptions) {
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
    // Results in the middle must not be lost.
    ...(tests.reading.kind !== 'reward-files' && { capBytes: programOutput.bytes.kept }),
    signal,
  });
  signal.throwIfAborted();
  return result;
}

/** What tests reach while they run. Disposing ends it. */
interface TestsNetwork extends AsyncDisposable {
  /** Variables of the tests. */
  env: Record<string, string>;
  /** Ends it, with all of its connections. Resolves with these. */
  end(): Promise<HostConnection[]>;
}

/**
 * Lets tests reach their hosts through the sandbox's port: no model, and nothing else. The proxy takes only
 * requests with a password that is made here. Requests that an agent sent before its end, and requests that
 * wait in a buffer of the sandbox, do not have it.
 */
async function openTestsNetwork(
  spec: TrialSpec,
  { gateway }: { gateway: Gateway },
  port: ModelPort,
): Promise<TestsNetwork> {
  await port.relay.ready;
  const session = gateway.open({
    trial: `${spec.runId}/${spec.ordinal} tests`,
    models: {},
    budget: {},
    hosts: spec.testsHosts ?? [],
    keep: () => Promise.reject(new Error('tests ask no model')),
  });
  const password = randomBytes(32).toString('base64url');
  const { host } = new URL(port.relay.origin);
  port.routeTo(guarded(session.handler, `Basic ${Buffer.from(`tests:${password}`).toString('base64')}`));
  const end = async () => {
    port.routeTo(undefined);
    await session[Symbol.asyncDispose]();
  };
  return {
    env: proxyVariables(`http://tests:${password}@${host}`, (spec.testsIn ?? spec).environment),
    async end() {
      await end();
      return (await session.account()).connections;
    },
    [Symbol.asyncDispose]: end,
  };
}

function guarded(handler: RelayHandler, credentials: string): RelayHandler {
  const asksFor = { 'proxy-authenticate': 'Basic realm="tests"', connection: 'close' };
  return {
    request(request, response) {
      if (request.headers['proxy-authorization'] === credentials) return handler.request(request, response);
      return response.writeHead(407, asksFor).end();
    },
    connect(request, client, first) {
      if (request.headers['proxy-authorization'] === credentials)
        return handler.connect(request, client, first);
      return answerLast(client, 407, 'Only the tests may use this proxy.');
    },
  };
}

/**
 * Puts a case's tests into a sandbox in which nothing runs. The folders that they need are emptied first by
 * the engine, without any program of the sandbox: a file replaces the folder and all that is in it, or the
 * link in its place, and a new folder then replaces the file. Throws a {@link TrialFailure} if something of
 * the agent's is left there.
 */
export async function putTests(
  container: Container,
  { files, emptied }: Pick<CaseTests, 'files' | 'emptied'>,
  signal: AbortSignal,
): Promise<void> {
  const above = new Set(emptied.flatMap(foldersAbove));
  await container.put(
    [
      ...[...above].map((path) => ({ path, folder: true as const })),
      ...emptied.flatMap(emptyFolder),
      ...files,
    ],
    '/',
    signal,
  );
  const ours = new Set(files.map(({ path }) => path));
  for (const folder of emptied) {
    for await (const { path, type } of container.archive(folder, signal, taskDigests.bytes.files)) {
      const whole = path === '' ? folder : `${folder}/${path}`;
      if (type !== 'folder' && !ours.has(whole)) throw notEmptied(whole);
    }
  }
}

function notEmptied(path: string): TrialFailure {
  return new TrialFailure({
    kind: 'infrastructure',
    phase: 'validate',
    message: `the engine left ${JSON.stringify(path)} in a folder that was to hold only the tests`,
  });
}
