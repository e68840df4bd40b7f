import { OffsiteError } from '../base/offsite-error.ts';
import { networkProblems } from '../suite/case-network.ts';
import { usedImages } from '../suite/dockerfile.ts';
import { type Frontend, namedFrontend, plainDockerfile, unmetNeeds } from '../suite/dockerfile-features.ts';
import type { CaseEnvironment, PlannedBuild } from '../suite/environment.ts';
import type { FileIssue } from '../suite/file-issues.ts';
import type { PlannedCase, Sandbox } from '../suite/plan.ts';
import type { CaseSource } from '../suite/suite-file.ts';
import type { TasksSource } from '../suite/tasks-source.ts';
import { findTasks, selectTasks } from './find-tasks.ts';
import { leftOutOf, type PlannedTask, planTask, type TaskPlanParts } from './plan-tasks.ts';
import { type Note, type Obstacle, Remarks } from './supported.ts';
import type { TaskFormat } from './task.ts';
import { issueAt } from './task-folder.ts';

/** A task as a list shows it: without its texts, so that a set of thousands takes little memory. */
export interface ListedTask extends Partial<ReturnType<typeof detailsOf>> {
  id: string;
  format: TaskFormat;
  /** The path of its folder, or of the file that has it as a row. */
  place: string;
  state: 'runs' | 'does not run' | 'unreadable';
  notes: readonly Note[];
  obstacles: readonly Obstacle[];
  /** What is wrong with its files, if it is unreadable. */
  issues: readonly FileIssue[];
  /** What it needs of an engine, if it can run. */
  needs?: TaskNeeds;
}

export interface TaskList {
  tasks: ListedTask[];
  /** What was found beside the tasks. */
  notes: readonly FileIssue[];
}

/**
 * Lists the tasks at a path. Those that can run are planned, so that what a run would refuse is reported.
 * Throws an `input` error if there are none, or none of a name that is asked for.
 */
export function listTasks(
  path: string,
  chosen: Omit<TasksSource, 'path'>,
  parts: TaskPlanParts & { sandbox: Pick<Sandbox, 'network' | 'hosts'> },
): TaskList {
  const { tasks, notes } = findTasks(path, chosen.format);
  const listOne = (found: (typeof tasks)[number]) => listed(planTask(found, chosen, parts), parts.sandbox);
  return { tasks: selectTasks(tasks, chosen).map(listOne), notes };
}

/** Adds to a list what a machine cannot give to its tasks. */
export async function listedFor(tasks: readonly ListedTask[], machine: Machine): Promise<ListedTask[]> {
  return Promise.all(
    tasks.map(async (task) => {
      if (!task.needs) return task;
      const obstacles = await machineObstacles(task.needs, task.place, machine);
      return obstacles.length === 0 ? task : { ...task, state: 'does not run', obstacles };
    }),
  );
}

function listed(read: PlannedTask, sandbox: Pick<Sandbox, 'network' | 'hosts'>): ListedTask {
  const { found, task, issues } = read;
  const { id, format, place } = found;
  const planned = read.case?.planned;
  const obstacles = planned ? networkObstacles(planned, sandbox) : read.obstacles;
  const runs = planned && obstacles.length === 0;
  return {
    id,
    format,
    place,
    state: runs ? 'runs' : planned ? 'does not run' : leftOutOf(read).state,
    ...(task && detailsOf(task.entry)),
    notes: task?.remarks.notes ?? [],
    obstacles,
    issues,
    ...(runs && { needs: needsOf(planned, place) }),
  };
}

function detailsOf({ id, name = id, environment = {}, tests, steps = [], solution, tags = [] }: CaseSource) {
  const { image, build, services = {} } = environment;
  const graded = tests ? [tests] : steps.map((step) => step.tests);
  return {
    name,
    environment: {
      kind: image !== undefined ? 'image' : build ? 'build' : 'unnamed',
      services: Object.keys(services),
    },
    verifier: {
      /** `separate`: at least some of its tests run in another sandbox than the agent. */
      mode: graded.some((each) => each.in === 'fresh') ? 'separate' : 'shared',
      reading: readingOf(graded[0]),
    },
    hasSolution: steps.length === 0 ? solution !== undefined : steps.every((step) => step.solution),
    /** How many steps it has; 1 for a task without steps. */
    steps: Math.max(1, steps.length),
    keywords: tags,
  } as const;
}

function readingOf({ rewards, prints, named }: Partial<NonNullable<CaseSource['tests']>> = {}) {
  if (rewards) return 'reward-files';
  if (prints) return 'printed-tests';
  return named ? 'named-tests' : 'unknown';
}

export type TaskCounts = ReturnType<typeof countTasks>;

/** Counts of the tasks in a list. */
export function countTasks(tasks: readonly ListedTask[]) {
  const inState = (state: ListedTask['state']) => tasks.filter((task) => task.state === state).length;
  return {
    tasks: tasks.length,
    run: inState('runs'),
    doNotRun: inState('does not run'),
    unreadable: inState('unreadable'),
    /** Tasks by what they ask for and cannot get; a task may have several. */
    obstacles: tasksBy(tasks, ({ obstacles }) => obstacles.map(({ feature }) => feature)),
    /** Tasks by what was noted of them. */
    notes: tasksBy(tasks, ({ notes }) => notes.map(({ kind }) => kind)),
  };
}

/** Most tasks first. */
function tasksBy(
  tasks: readonly ListedTask[],
  kindsOf: (task: ListedTask) => readonly string[],
): Record<string, number> {
  const counts = new Map<string, number>();
  for (const task of tasks)
    for (const kind of new Set(kindsOf(task))) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return Object.fromEntries([...counts].toSorted(([, one], [, other]) => other - one));
}

/** What a task needs of an engine. */
interface TaskNeeds {
  cpus: number | undefined;
  memoryBytes: number | undefined;
  /** The images that it begins with, as the configuration maps them, and where its files name them. */
  images: { name: string; at: FileIssue }[];
  /** Where its repository is, if the task is about one commit, and its later ones must not be there. */
  repository: { image: string; at: FileIssue; folder: string | undefined; base: string } | undefined;
  builds: { dockerfile: string; file: string; frontend: string | undefined }[];
}

/** What an engine has. */
export interface Machine {
  cpus: number;
  memoryBytes: number;
  hasImage(name: string): Promise<boolean>;
  /** What an agent in a sandbox of an image could read of commits after one of its repository. */
  laterCommits(image: string, folder: string | undefined, base: string): Promise<string | undefined>;
  /** What builds images on it. */
  builder(): Promise<{ kind: 'buildkit' | 'classic'; frontend: Frontend }>;
}

export function needsOf({ local: { environment, tests } }: PlannedCase, place: string): TaskNeeds {
  const { cpus, memory } = environment.resources;
  const all = [environment, tests?.fresh?.environment];
  const images = all.flatMap((each) => (each ? imagesOf(each, place) : []));
  const services = all.flatMap((each) => each?.services ?? []);
  const builds = [...all, ...services].flatMap((each) => (each?.build ? [buildOf(each.build)] : []));
  const { brought } = tests?.fresh ?? {};
  const [own] = imagesOf(environment, place);
  const repository =
    environment.image && own && brought?.kind === 'workspace'
      ? { image: own.name, at: own.at, folder: environment.workdir, base: brought.base }
      : undefined;
  return { cpus, memoryBytes: memory, images, builds, repository };
}

function buildOf({ dockerfile, file, images }: PlannedBuild): TaskNeeds['builds'][number] {
  const named = namedFrontend(dockerfile);
  return { dockerfile, file, frontend: named === undefined ? undefined : (images[named] ?? named) };
}

function imagesOf({ image, build }: CaseEnvironment, place: string): TaskNeeds['images'] {
  if (image) return [{ name: image.mappedTo ?? image.name, at: issueAt(place, image.name) }];
  if (!build) return [];
  return usedImages(build.dockerfile, build.args).map(({ name, line }) => ({
    name: build.images[name] ?? name,
    at: { ...issueAt(build.file, name), line },
  }));
}

/** What a machine cannot give to a task, and why its trials would be void. */
export async function machineObstacles(
  { cpus = 0, memoryBytes = 0, images, builds, repository }: TaskNeeds,
  place: string,
  machine: Machine,
): Promise<Obstacle[]> {
  const remarks = new Remarks();
  const mebibytes = (bytes: number) => `${Math.floor(bytes / 1024 ** 2)} MiB`;
  if (cpus > machine.cpus)
    remarks.uses('machine-limits', issueAt(place, `asks for ${cpus} processors, more than ${machine.cpus}`));
  if (memoryBytes > machine.memoryBytes) {
    const asked = `asks for ${mebibytes(memoryBytes)} of memory, more than ${mebibytes(machine.memoryBytes)}`;
    remarks.uses('machine-limits', issueAt(place, asked));
  }
  for (const { name, at } of images)
    if (name !== 'scratch' && !(await machine.hasImage(name))) remarks.uses('absent-image', at);
  if (repository && (await machine.hasImage(repository.image))) {
    const { image, at, folder, base } = repository;
    try {
      const later = await machine.laterCommits(image, folder, base);
      if (later !== undefined) remarks.uses('later-commits', { ...at, message: later });
    } catch (error) {
      // One bad image must not end the list of all others.
      if (!(error instanceof OffsiteError) || error.code !== 'TRIAL_VOID') throw error;
      remarks.uses('unsearched-image', { ...at, message: error.message });
    }
  }
  for (const { dockerfile, file, frontend } of builds) {
    const { kind, frontend: own } = await machine.builder();
    const isNamed = frontend !== undefined && kind === 'buildkit' && (await machine.hasImage(frontend));
    const used = isNamed ? 'current' : own;
    for (const { line, message } of unmetNeeds(plainDockerfile(dockerfile, used).text, used))
      remarks.uses('builder', { ...issueAt(file, message), line });
  }
  return remarks.obstacles;
}

/** Which hosts a task asks for that a sandbox does not permit, each place once. */
export function networkObstacles(
  { local }: PlannedCase,
  sandbox: Pick<Sandbox, 'network' | 'hosts'>,
): readonly Obstacle[] {
  const remarks = new Remarks();
  for (const { kind, at, hosts } of networkProblems(local, sandbox))
    remarks.uses(kind === 'missing' ? 'unpermitted-host' : 'mixed-networks', {
      ...at,
      message: hosts.join(', '),
    });
  return remarks.obstacles;
}
