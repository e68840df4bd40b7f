import { basename, posix } from 'node:path';
import type { AgentSource } from '../../suite/agent-source.ts';
import { BadFile } from '../../suite/file-issues.ts';
import type { CaseSource, StepSource } from '../../suite/suite-file.ts';
import type { OracleSource } from '../../suite/tests-source.ts';
import type { Path } from '../../suite/yaml-file.ts';
import { checkDocument } from '../document.ts';
import { ignorePatterns } from '../files-below.ts';
import { Remarks } from '../supported.ts';
import { type FoundTask, type Keys, placedIn, type Task, taskReading } from '../task.ts';
import { TaskFolder } from '../task-folder.ts';
import { readTomlFile } from '../toml-file.ts';
import {
  type HarborEnvironment,
  type HarborReading,
  hostsOf,
  readEnvironment,
  readNetwork,
  readVariables,
} from './environment.ts';
import {
  type AgentTable,
  type ArtifactTable,
  type StepTable,
  schemaVersions,
  TaskToml,
} from './task-toml.ts';
import { modeOf, plainPath, readTests } from './verifier.ts';

/**
 * Reads a task in the format of Harbor. Throws `BadFile` with all problems of the first of its files that has
 * any, and `input` errors for files that cannot be read.
 */
export function readHarborTask({ id, place }: FoundTask): Task {
  const folder = new TaskFolder(place);
  folder.requireFile('task.toml');
  const document = readTomlFile(folder.at('task.toml'), { reach: folder.reach });
  const collected = taskReading(document);
  const toml = checkDocument(document, TaskToml, collected.remarks);
  const reading: HarborReading = {
    ...collected,
    folder,
    toml,
    ignored: ignorePatterns(folder, '.harborignore'),
  };
  checkVersion(reading);
  const { task, artifacts } = toml;
  const name = task.name ?? basename(folder.path);
  const environment = readEnvironment(reading, toml.environment, {
    keys: ['environment'],
    path: ['environment'],
    folder: ['environment'],
  });
  const isWhole = toml.steps.length === 0;
  const { variables, ...graded } = isWhole
    ? readWhole(reading, environment)
    : readSteps(reading, environment);
  recordArtifacts(reading, artifacts, ['artifacts']);
  const entry = {
    id,
    ...(name !== id && { name }),
    ...(task.keywords.length > 0 && { tags: task.keywords }),
    ...(variables && { variables }),
    environment: environment.environment,
    ...graded,
    ...artifactsOf(artifacts),
  };
  return { ...collected, entry };
}

function checkVersion({ document, remarks, toml }: HarborReading): void {
  const key = toml.schema_version === undefined ? 'version' : 'schema_version';
  const version = toml[key];
  if (version !== undefined && !schemaVersions.includes(version))
    remarks.uses('schema-version', document.issue([key], version));
}

function readWhole(reading: HarborReading, environment: HarborEnvironment): Partial<CaseSource> {
  const { folder, toml } = reading;
  const tests = { ...readTests(reading, environment), threshold: 1 };
  const instruction = withoutCanary(folder.text('instruction.md'));
  const agent = readAgent(reading, environment, toml.agent, ['agent'], ['agent']);
  return {
    variables: { instruction },
    tests,
    solution: readSolution(reading),
    ...(Object.keys(agent).length > 0 && { agent }),
  };
}

function readSteps(reading: HarborReading, environment: HarborEnvironment): Partial<CaseSource> {
  const { toml, folder, own } = reading;
  requireNames(reading);
  // Those of the whole task solve and grade it, even if each step has its own.
  own.push(...['solution', 'tests'].flatMap((name) => folder.folder(name) ?? []));
  modeOf(reading, toml.verifier, ['verifier']);
  const steps = toml.steps.map((step, index) => readStep(reading, environment, step, index));
  // What is said of the agent is noted with the steps.
  const unnoted = { ...reading, remarks: new Remarks() };
  const agent = readAgent(unnoted, environment, toml.agent, ['agent'], ['agent']);
  return {
    steps,
    overall: { rewards: toml.multi_step_reward_strategy, threshold: 1 },
    ...(Object.keys(agent).length > 0 && { agent }),
  };
}

function readStep(
  reading: HarborReading,
  environment: HarborEnvironment,
  step: StepTable,
  index: number,
): StepSource {
  const { document, remarks, folder, toml } = reading;
  const { name, min_reward: least } = step;
  const keys = ['steps', index];
  const names = ['steps', name];
  const agent = { ...toml.agent, ...step.agent };
  if (step.healthcheck) remarks.uses('healthcheck', document.issue([...keys, 'healthcheck'], ''));
  const instruction = withoutCanary(folder.text(...names, 'instruction.md'));
  const agentAt = step.agent ? [...keys, 'agent'] : ['agent'];
  const agentOfStep = readAgent(reading, environment, agent, agentAt, [...keys, 'agent']);
  const tests = readTests(reading, environment, { step, index });
  const solution = readSolution(reading, names, keys) ?? readSolution(reading, [], keys);
  const workdir = folder.folder(...names, 'workdir');
  const files = workdir === undefined ? [] : [{ from: workdir, to: '.', ignored: [] }];
  recordArtifacts(reading, step.artifacts, [...keys, 'artifacts']);
  return {
    name,
    instruction,
    folders: placedIn(reading, [...keys, 'workdir'], files).folders,
    ...(index > 0 && { empties: ['/logs/agent', '/logs/artifacts'] }),
    ...(folder.isFile(...names, 'workdir', 'setup.sh') && { setup: 'setup.sh' }),
    ...(step.healthcheck && { healthcheck: step.healthcheck }),
    agent: agentOfStep,
    ...(agent.timeout_sec !== undefined && { timeout: agent.timeout_sec }),
    tests: { ...tests, threshold: typeof least === 'number' ? { reward: least } : { ...least } },
    ...artifactsOf(step.artifacts),
    solution,
  };
}

function requireNames({ document, toml: { steps } }: HarborReading): void {
  const names = new Set<string>();
  for (const [index, { name }] of steps.entries()) {
    if (names.has(name))
      throw new BadFile([
        document.issue(['steps', index, 'name'], `${name} is already the name of another step`),
      ]);
    names.add(name);
  }
}

/** The solution in a folder of the task, or of one of its steps. */
function readSolution(
  reading: HarborReading,
  names: readonly string[] = [],
  keys: Keys = [],
): OracleSource | undefined {
  const { folder, toml, ignored, own } = reading;
  const script = toml.environment.os === 'windows' ? 'solve.bat' : 'solve.sh';
  if (!folder.isFile(...names, 'solution', script)) return undefined;
  const from = folder.at(...names, 'solution');
  own.push(from);
  return {
    command: [...folder.interpreter(...names, 'solution', script), `/solution/${script}`],
    ...placedIn(reading, [...keys, 'solution'], [{ from, to: '/solution', ignored }]),
    env: readVariables(reading, toml.solution.env, ['solution', 'env']),
  };
}

/** Whether a line is a comment of Markdown or of a script that has the word canary. */
function isCanary(line: string): boolean {
  const text = line.trim().toLowerCase();
  if (!text.includes('canary')) return false;
  return text.startsWith('#') || (text.startsWith('<!--') && text.endsWith('-->'));
}

/**
 * The text of an instruction without the comments at its beginning that mark it as part of a benchmark, and
 * without the empty lines after them.
 */
export function withoutCanary(text: string): string {
  const lines = text.split('\n');
  let first = 0;
  for (const [index, line] of lines.entries()) {
    if (isCanary(line)) first = index + 1;
    else if (line.trim() !== '') break;
  }
  if (first === 0) return text;
  while (first < lines.length && lines[first]?.trim() === '') first += 1;
  return lines.slice(first).join('\n');
}

/**
 * The agent of a task, or of one of its steps.
 *
 * @param path where the table is in `task.toml`
 * @param keys where the agent is in the case
 */
function readAgent(
  reading: HarborReading,
  environment: HarborEnvironment,
  table: AgentTable,
  path: Path,
  keys: Keys,
): AgentSource {
  const { document, remarks } = reading;
  if (table.timeout_sec === undefined) remarks.uses('agent-without-limit', document.issue(path, ''));
  const network = readNetwork(reading, table, path) ?? environment.network;
  return {
    ...hostsOf(reading, network, keys),
    ...(table.user !== undefined && { user: table.user }),
    ...environment.agent,
  };
}

function recordArtifacts(
  { document, remarks }: HarborReading,
  artifacts: readonly ArtifactTable[],
  path: Path,
): void {
  for (const [index, { source, service }] of artifacts.entries()) {
    const at = document.issue([...path, index], source);
    remarks.uses('artifacts', at);
    if (posix.normalize(source) === '/') remarks.uses('whole-artifact', at);
    if (service !== 'main') remarks.uses('service-artifact', { ...at, message: `${source} of ${service}` });
  }
}

/** Globs of files and of folders; those outside the working folder match nothing. */
function artifactsOf(artifacts: readonly ArtifactTable[]) {
  const withBelow = (glob: string) => [glob, `${glob}/**`];
  const artifactsExcept = artifacts.flatMap(({ source, exclude }) =>
    exclude.flatMap((glob) => withBelow(`${plainPath(source)}/**/${glob}`)),
  );
  return {
    artifacts: artifacts.flatMap(({ source }) => withBelow(plainPath(source))),
    ...(artifactsExcept.length > 0 && { artifactsExcept }),
  };
}
