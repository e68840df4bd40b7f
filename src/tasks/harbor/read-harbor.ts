import { basename } from 'node:path';
import { checkDocument } from '../document.ts';
import { filesBelow, ignorePatterns } from '../files-below.ts';
import { Remarks } from '../supported.ts';
import type { Task, TaskVerifier } from '../task.ts';
import { TaskFolder } from '../task-folder.ts';
import { readTomlFile } from '../toml-file.ts';
import { readAgent, readArtifacts } from './agent.ts';
import { readEnvironment } from './environment.ts';
import { withoutCanary } from './instruction.ts';
import type { HarborSource } from './source.ts';
import { readSolution, readSteps } from './steps.ts';
import { schemaVersions, TaskToml } from './task-toml.ts';
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
    description: toml.task.description,
    instruction: hasSteps ? '' : withoutCanary(folder.text('instruction.md')),
    environment,
    agent: readAgent(whole, toml.agent, ['agent']),
    verifier,
    solution: readSolution(source, { toml, ignored }),
    steps,
    rewardStrategy: toml.multi_step_reward_strategy,
    artifacts: readArtifacts(source, toml.artifacts, ['artifacts']),
    keywords: toml.task.keywords,
    metadata: toml.metadata,
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
    ...(of.solution?.kind === 'script' && of.solution.files ? [of.solution.files] : []),
  ];
  for (const each of [{ verifier, solution }, ...steps])
    for (const { from, ignored } of places(each)) filesBelow(folder, from, ignored);
}
