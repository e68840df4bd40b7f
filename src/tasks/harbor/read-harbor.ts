import { basename, posix } from 'node:path';
import { BadFile } from '../../suite/file-issues.ts';
import type { Path } from '../../suite/yaml-file.ts';
import { checkDocument } from '../document.ts';
import { filesBelow, ignorePatterns } from '../files-below.ts';
import { Remarks } from '../supported.ts';
import type { Task, TaskAgent, TaskArtifact, TaskSolution, TaskStep, TaskVerifier } from '../task.ts';
import { TaskFolder } from '../task-folder.ts';
import { readTomlFile } from '../toml-file.ts';
import {
  type HarborSource,
  healthcheckOf,
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
import { readVerifier } from './verifier.ts';

/**
 * Reads a task in the format of Harbor. Throws `BadFile` with all problems of the first of its files that has
 * any, and `input` errors for files that cannot be read.
 */
export function readHarborTask(path: string): Task {
  const folder = new TaskFolder(path);
  folder.requireFile('task.toml');
  const document = readTomlFile(folder.at('task.toml'), { reach: folder.reach });
  const remarks = new Remarks();
  const source: HarborSource = { folder, document, remarks };
  const toml = checkDocument(document, TaskToml, remarks);
  checkVersion(source, toml);
  const ignored = ignorePatterns(folder, '.harborignore');
  const hasSteps = toml.steps.length > 0;
  const environment = readEnvironment(source, toml.environment, {
    path: ['environment'],
    folder: ['environment'],
  });
  const steps = readSteps(source, { toml, ignored });
  // What steps say of agent and tests is read with the steps.
  const whole = hasSteps ? { ...source, remarks: new Remarks() } : source;
  const verifier = readVerifier(whole, { toml, step: undefined, ignored });
  const task: Task = {
    id: basename(folder.path),
    name: toml.task.name ?? basename(folder.path),
    format: 'harbor',
    place: folder.path,
    instruction: hasSteps ? '' : withoutCanary(folder.text('instruction.md')),
    environment,
    agent: readAgent(whole, toml.agent, ['agent']),
    verifier,
    solution: readSolution(source, { toml, ignored }),
    steps,
    rewardStrategy: toml.multi_step_reward_strategy,
    artifacts: readArtifacts(source, toml.artifacts, ['artifacts']),
    keywords: toml.task.keywords,
    notes: remarks.notes,
    obstacles: remarks.obstacles,
  };
  requireFilesWithin(folder, task);
  return task;
}

function checkVersion({ document, remarks }: HarborSource, toml: TaskToml): void {
  const key = toml.schema_version === undefined ? 'version' : 'schema_version';
  const version = toml[key];
  if (version !== undefined && !schemaVersions.includes(version))
    remarks.uses('schema-version', document.issue([key], version));
}

/** Throws `BadFile` if a folder that is put into a container has a link that leads out of the task. */
function requireFilesWithin(folder: TaskFolder, { verifier, solution, steps }: Task): void {
  const places = (of: { verifier: TaskVerifier; solution: Task['solution'] }) => [
    ...of.verifier.tests,
    ...(of.solution?.kind === 'script' ? [of.solution.files] : []),
  ];
  for (const each of [{ verifier, solution }, ...steps])
    for (const { from, ignored } of places(each)) filesBelow(folder, from, ignored);
}

interface StepsRequest {
  toml: TaskToml;
  ignored: readonly string[];
}

function readSteps(source: HarborSource, { toml, ignored }: StepsRequest): TaskStep[] {
  const { document, remarks } = source;
  requireNames(source, toml);
  return toml.steps.map((step, index) => {
    const path = ['steps', index];
    const folder = ['steps', step.name];
    const agent = { ...toml.agent, ...withoutUndefined(step.agent ?? {}) };
    // A step's verifier never gets the timeout of the task's verifier.
    const table = step.verifier ?? { timeout_sec: 600_000, env: {} };
    if (step.healthcheck) remarks.uses('healthcheck', document.issue([...path, 'healthcheck'], ''));
    return {
      name: step.name,
      instruction: withoutCanary(source.folder.text(...folder, 'instruction.md')),
      agent: readAgent(source, agent, step.agent ? [...path, 'agent'] : ['agent']),
      verifier: readVerifier(source, {
        toml,
        step: { table, path: step.verifier ? [...path, 'verifier'] : ['verifier'], folder },
        ignored,
      }),
      solution: readSolution(source, { toml, ignored }, folder) ?? readSolution(source, { toml, ignored }),
      workdirFiles: source.folder.folder(...folder, 'workdir'),
      setup: source.folder.isFile(...folder, 'workdir', 'setup.sh') ? 'setup.sh' : undefined,
      healthcheck: step.healthcheck && healthcheckOf(step.healthcheck),
      artifacts: readArtifacts(source, step.artifacts, [...path, 'artifacts']),
      minReward: minRewardOf(step),
    };
  });
}

function requireNames({ document }: HarborSource, { steps }: TaskToml): void {
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
  source: HarborSource,
  { toml, ignored }: StepsRequest,
  names: readonly string[] = [],
): TaskSolution | undefined {
  const { folder } = source;
  const script = toml.environment.os === 'windows' ? 'solve.bat' : 'solve.sh';
  if (!folder.isFile(...names, 'solution', script)) return undefined;
  return {
    kind: 'script',
    files: { from: folder.at(...names, 'solution'), to: '/solution', ignored },
    command: [...folder.interpreter(...names, 'solution', script), `/solution/${script}`],
    env: readVariables(source, toml.solution.env, ['solution', 'env']),
  };
}

function minRewardOf({ min_reward: given }: StepTable): Record<string, number> {
  return typeof given === 'number' ? { reward: given } : { ...given };
}

function withoutUndefined<Given extends object>(given: Given): Partial<Given> {
  return Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  ) as Partial<Given>;
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

function readAgent(source: HarborSource, table: AgentTable, path: Path): TaskAgent {
  const { document, remarks } = source;
  if (table.timeout_sec === undefined) remarks.uses('agent-without-limit', document.issue(path, ''));
  return { timeoutMs: table.timeout_sec, user: table.user, network: readNetwork(source, table, path) };
}

function readArtifacts(
  { document, remarks }: HarborSource,
  artifacts: readonly ArtifactTable[],
  path: Path,
): TaskArtifact[] {
  return artifacts.map(({ source, exclude, service }, index) => {
    const at = document.issue([...path, index], source);
    remarks.uses('artifacts', at);
    if (posix.normalize(source) === '/') remarks.uses('whole-artifact', at);
    if (service !== 'main') remarks.uses('service-artifact', { ...at, message: `${source} of ${service}` });
    return { source, exclude };
  });
}
