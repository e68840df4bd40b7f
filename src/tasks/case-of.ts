import { statSync } from 'node:fs';
import { join, posix } from 'node:path';
import type { AgentSource } from '../suite/agent-source.ts';
import { EnvironmentSource } from '../suite/environment.ts';
import { BadFile, type FileIssue } from '../suite/file-issues.ts';
import type { GivenEnvironment } from '../suite/load-environment.ts';
import { schemaProblems } from '../suite/schema-problems.ts';
import { type ServiceHealthcheck, type ServiceSource, Services } from '../suite/services.ts';
import type { CaseSource, StepSource } from '../suite/suite-file.ts';
import type { TasksSource } from '../suite/tasks-source.ts';
import type { OracleSource, TestsSource } from '../suite/tests-source.ts';
import { artifactsFolder, testsFolder, verifierLogs } from './harbor/verifier.ts';
import { wholePatch } from './swe-bench/row.ts';
import type {
  PlacedFolder,
  ServiceFile,
  Task,
  TaskAgent,
  TaskEnvironment,
  TaskNetwork,
  TaskService,
  TaskStep,
  TaskVerifier,
} from './task.ts';
import { issueAt } from './task-folder.ts';

/** A task as a case of a suite file, as that is after it was parsed. Its paths are absolute. */
export interface TaskCase {
  entry: CaseSource;
  /**
   * What stands at the paths of `entry` where no file can be, below the file that defines the task: a text,
   * or folders, of which the later ones replace files of the earlier ones.
   */
  named: Map<string, string | PlacedFolder[]>;
  /** Where the task says something: what is wrong with it, or else with a key of `entry`. */
  issue(keys: readonly PropertyKey[], message: string): FileIssue;
  /** The files and folders that grade and solve the task. */
  own: string[];
}

/** What the parts of a case are made with. */
interface Making {
  task: Task;
  /** The file that defines the task. Nothing can be below it. */
  definition: string;
  named: TaskCase['named'];
  places: Map<string, FileIssue>;
  issues: FileIssue[];
}

/**
 * The one way from a task to a case: `--tasks` loads the case, and `offsite tasks import` writes it. The
 * instruction is the variable `instruction`, and the task's own tests grade. Throws {@link BadFile}.
 */
export function caseOf(task: Task, threshold: TasksSource['threshold'] = 1): TaskCase {
  const { id, name, keywords, steps, instruction, solution, verifier, artifacts, place } = task;
  const definition = { harbor: 'task.toml', 'terminal-bench': 'task.yaml', 'swe-bench': '' }[task.format];
  const making: Making = {
    task,
    definition: join(place, definition),
    named: new Map(),
    places: new Map(),
    issues: [],
  };
  const agent = agentOf(task.agent, ['agent'], making);
  const entry: CaseSource = {
    id,
    ...(name !== id && { name }),
    ...(keywords.length > 0 && { tags: keywords }),
    ...(steps.length === 0 && { variables: { instruction } }),
    environment: environmentOf(task.environment, ['environment'], making),
    ...(steps.length === 0
      ? {
          tests: { ...testsOf(verifier, artifacts, [], making), threshold },
          solution: solutionOf(solution, '', making),
        }
      : {
          steps: steps.map((step, index) => stepOf(step, index, making)),
          overall: { rewards: task.rewardStrategy, threshold },
        }),
    ...(Object.keys(agent).length > 0 && { agent }),
    ...artifactsOf(artifacts),
  };
  const { named, places, issues } = making;
  if (issues.length > 0) throw new BadFile(issues);
  const issue: TaskCase['issue'] = (keys, message) => {
    const known = keys.map((_, index) => places.get(keys.slice(0, keys.length - index).join('.')));
    const at = known.find((one) => one !== undefined);
    return at ? { ...at, message } : issueAt(making.definition, [keys.join('.'), message].join(': '));
  };
  return { entry, named, issue, own: ownFiles(task) };
}

function ownFiles({ verifier, solution, steps }: Task): string[] {
  return [{ verifier, solution }, ...steps].flatMap((one) => [
    ...one.verifier.tests.map(({ from }) => from),
    ...(one.solution?.kind === 'script' ? [one.solution.files.from] : []),
  ]);
}

type Keys = readonly (string | number)[];

/** Folders that Harbor makes for agents, tests and artifacts. Any user may write to them. */
const logFolders = ['/logs/agent', '/logs/verifier', '/logs/artifacts'];

/** @param keys where it is in the case */
function environmentOf(
  { source, main, services, startUp, healthcheck, ...given }: TaskEnvironment,
  keys: Keys,
  making: Making,
): GivenEnvironment {
  const { task, definition, places, issues } = making;
  const { workdir, user, env } = given;
  const key = keys.includes('tests') ? 'verifier.environment' : 'environment';
  const wrong = (of: string, { path, message }: { path: PropertyKey[]; message: string }) =>
    issues.push(issueAt(definition, `${[of, ...path].join('.')}: ${message}`));
  const checked = EnvironmentSource.safeParse({ workdir, user, env }, { reportInput: true });
  if (!checked.success) for (const problem of schemaProblems(checked.error)) wrong(key, problem);
  if (source.kind === 'build') places.set([...keys, 'build'].join('.'), issueAt(source.dockerfile, ''));
  for (const { name, place } of services) places.set([...keys, 'services', name].join('.'), place);
  const beside = Services.safeParse(
    Object.fromEntries(services.map((service) => [service.name, serviceOf(service, making)])),
    { reportInput: true },
  );
  if (!beside.success) for (const problem of schemaProblems(beside.error)) wrong('services', problem);
  const { files: mounted = [], hosts = {}, name } = main ?? {};
  const { files, folders } = mountedFiles(mounted);
  const placed = mounted.flatMap((file): NonNullable<GivenEnvironment['placed']> => {
    if (file.kind === 'memory') return [{ path: file.to, folder: true, mode: 0o1777 }];
    if (file.kind !== 'content') return [];
    return [{ path: file.to, content: Buffer.from(file.content), mode: 0o644 }];
  });
  return {
    ...containerOf(source),
    ...(services.length > 0 && {
      services: withVolumes(beside.data ?? {}, services),
      ...(name !== undefined && { nameForServices: name }),
    }),
    workdir,
    user,
    env,
    resources: { cpus: given.cpus, memory: given.memoryBytes, disk: given.diskBytes },
    ...(startUp && { startUp }),
    ...(Object.keys(hosts).length > 0 && { hosts }),
    ...(healthcheck && { healthcheck }),
    timeouts: { build: given.buildTimeoutMs, harness: task.agent.timeoutMs },
    files,
    folders: { ...(given.files !== undefined && { '.': given.files }), ...folders },
    writable: logFolders,
    // What a suite has no keys for.
    ...(placed.length > 0 && { placed }),
    ...volumesOf(mounted),
  };
}

function containerOf(source: TaskEnvironment['source']) {
  if (source.kind === 'image') return { image: source.image };
  if (source.kind === 'unnamed') return {};
  const { kind: _, ...build } = source;
  return { build };
}

/** A service as a suite file says it before it is parsed. */
function serviceOf(service: TaskService, { definition, named }: Making) {
  const { command, entrypoint, aliases, env, workdir, user, hosts, healthcheck, cpus, memoryBytes } = service;
  const { files, folders } = mountedFiles(service.files);
  const texts = service.files.flatMap((file) => {
    if (file.kind !== 'content') return [];
    const path = join(definition, 'services', service.name, file.to);
    named.set(path, file.content);
    return [[file.to, path]];
  });
  return {
    ...containerOf(service.source),
    command,
    entrypoint,
    aliases,
    env,
    workdir,
    user,
    ...(Object.keys(hosts).length > 0 && { hosts }),
    ...(healthcheck && { healthcheck: healthcheck === 'none' ? false : healthcheckOf(healthcheck) }),
    dependsOn: Object.fromEntries(service.dependsOn.map((one) => [one.service, one.until])),
    files: { ...files, ...Object.fromEntries(texts) },
    folders,
    resources: { cpus, memory: memoryBytes },
    memoryFolders: service.files.flatMap((file) => (file.kind === 'memory' ? [file.to] : [])),
  };
}

function healthcheckOf({ command, retries, ...times }: ServiceHealthcheck) {
  const { interval, timeout, startPeriod } = times;
  const duration = (ms: number) => `${Math.max(1, Math.round(ms))}ms`;
  return {
    command,
    interval: duration(interval),
    timeout: duration(timeout),
    startPeriod: duration(startPeriod),
    retries: Math.max(1, retries),
  };
}

/** Volumes may have any path, also one that no suite can name. */
function withVolumes(services: Record<string, ServiceSource>, of: readonly TaskService[]) {
  return Object.fromEntries(
    Object.entries(services).map(([name, service]) => [
      name,
      { ...service, ...volumesOf(of.find((one) => one.name === name)?.files ?? []) },
    ]),
  );
}

function volumesOf(files: readonly ServiceFile[]): { volumes?: string[] } {
  const volumes = files.flatMap((file) => (file.kind === 'volume' ? [file.to] : []));
  return volumes.length > 0 ? { volumes } : {};
}

/** The files and folders of a task that a container mounts, by their paths there. */
function mountedFiles(files: readonly ServiceFile[]) {
  const mounted = files.filter((file) => file.kind === 'file');
  const targets = (wanted: boolean) =>
    Object.fromEntries(
      mounted.filter(({ from }) => isFolder(from) === wanted).map(({ from, to }) => [to, from]),
    );
  return { files: targets(false), folders: targets(true) };
}

function isFolder(path: string): boolean {
  return statSync(path).isDirectory();
}

/** The agent of a task, or of one of its steps. */
function agentOf({ user, network: own }: TaskAgent, keys: Keys, making: Making): AgentSource {
  const { mcpServers, skillsFolder, network } = making.task.environment;
  return {
    ...hostsOf(own ?? network, keys, making),
    ...(user !== undefined && { user }),
    ...(Object.keys(mcpServers).length > 0 && { mcpServers }),
    ...(skillsFolder !== undefined && { skills: skillsFolder }),
  };
}

/** Nothing for a network that the task does not limit. */
function hostsOf(network: TaskNetwork, keys: Keys, { places }: Making): { hosts?: string[] } {
  if (network.mode === 'public') return {};
  places.set([...keys, 'hosts'].join('.'), network.at);
  return { hosts: network.mode === 'none' ? [] : network.hosts };
}

/** How a task, or one of its steps, is graded, without its threshold. */
function testsOf(verifier: TaskVerifier, artifacts: Task['artifacts'], of: Keys, making: Making) {
  const { task, definition } = making;
  const { tests, command, env, user, timeoutMs: timeout, reading, collect, environment } = verifier;
  if (reading.kind === 'unknown' || !command)
    throw new BadFile([issueAt(task.place, 'is graded in a way that Offsite does not have yet')]);
  const keys = [...of, 'tests'];
  const network = verifier.network ?? (environment ?? task.environment).network;
  return {
    ...placedIn(tests, join(definition, ...keys.map(String)), making),
    command,
    env,
    user,
    timeout,
    ...readingOf(reading),
    collect: collect.map(({ timeoutMs, ...each }) => ({ ...each, timeout: timeoutMs })),
    ...hostsOf(network, keys, making),
    ...freshOf(verifier, artifacts, keys, making),
  };
}

function readingOf(reading: Exclude<TaskVerifier['reading'], { kind: 'unknown' }>) {
  if (reading.kind === 'printed-tests') return { prints: reading.parser };
  if (reading.kind === 'reward-files') return { rewards: { json: reading.json, text: reading.text } };
  const { parser, report, failToPass, passToPass } = reading;
  return { named: { parser, report, failToPass, passToPass } };
}

/** Where the tests run, and what they get if that is not the agent's own sandbox. */
function freshOf(
  { mode, environment: own, reading }: TaskVerifier,
  artifacts: Task['artifacts'],
  keys: Keys,
  making: Making,
): Pick<TestsSource, 'in' | 'environment' | 'brings' | 'sealed' | 'patch' | 'restored'> {
  if (mode === 'shared') return { in: 'same' };
  if (reading.kind === 'named-tests') {
    const { testPatch: source, base, restored } = reading;
    return { in: 'fresh', brings: 'workspace', patch: { source, base }, restored };
  }
  const declared = artifacts.map(({ source, exclude }) => ({ path: plainPath(source), except: exclude }));
  return {
    in: 'fresh',
    ...(own && { environment: environmentOf(own, [...keys, 'environment'], making) }),
    brings: [{ path: artifactsFolder, except: [] }, ...declared],
    sealed: [testsFolder, verifierLogs],
  };
}

/** Files and folders with their paths in the sandbox. */
function placedIn(placed: readonly PlacedFolder[], way: string, { named }: Making) {
  const folders: Record<string, string> = {};
  const files: Record<string, string> = {};
  for (const one of placed) {
    const path = join(way, one.to);
    if (isFolder(one.from)) {
      const known = named.get(path);
      named.set(path, [...(Array.isArray(known) ? known : []), one]);
      folders[one.to] = path;
    } else files[one.to] = one.from;
  }
  return { folders, files };
}

function solutionOf(solution: Task['solution'], of: string, making: Making): OracleSource | undefined {
  const way = join(making.definition, of, 'solution');
  if (solution?.kind === 'script') {
    const { files, command, env } = solution;
    return { command, ...placedIn([files], way, making), env };
  }
  if (!solution) return undefined;
  const path = '/solution/solution.patch';
  making.named.set(join(way, path), wholePatch(solution.patch));
  // The repository of the workspace may belong to another user.
  const command = ['git', '-c', 'safe.directory=*', 'apply', '--whitespace=nowarn', path];
  return { command, files: { [path]: join(way, path) }, env: {} };
}

function stepOf(step: TaskStep, index: number, making: Making): StepSource {
  const { name, instruction, workdirFiles, setup, healthcheck, minReward } = step;
  const keys = ['steps', index];
  const way = join(...keys.map(String));
  const files = workdirFiles === undefined ? [] : [{ from: workdirFiles, to: '.', ignored: [] }];
  return {
    name,
    instruction,
    folders: placedIn(files, join(making.definition, way, 'workdir'), making).folders,
    ...(index > 0 && { empties: ['/logs/agent', '/logs/artifacts'] }),
    ...(setup !== undefined && { setup }),
    ...(healthcheck && { healthcheck }),
    agent: agentOf(step.agent, [...keys, 'agent'], making),
    ...(step.agent.timeoutMs !== undefined && { timeout: step.agent.timeoutMs }),
    tests: {
      ...testsOf(step.verifier, [...making.task.artifacts, ...step.artifacts], keys, making),
      threshold: minReward,
    },
    ...artifactsOf(step.artifacts),
    solution: solutionOf(step.solution, way, making),
  };
}

/** Globs of files and of folders; those outside the working folder match nothing. */
function artifactsOf(artifacts: Task['artifacts']): Pick<CaseSource, 'artifacts' | 'artifactsExcept'> {
  const withBelow = (glob: string) => [glob, `${glob}/**`];
  const artifactsExcept = artifacts.flatMap(({ source, exclude }) =>
    exclude.flatMap((glob) => withBelow(`${plainPath(source)}/**/${glob}`)),
  );
  return {
    artifacts: artifacts.flatMap(({ source }) => withBelow(plainPath(source))),
    ...(artifactsExcept.length > 0 && { artifactsExcept }),
  };
}

function plainPath(path: string): string {
  return posix.normalize(path).replace(/\/$/, '');
}
