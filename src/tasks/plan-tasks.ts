import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Hiding, withGiven } from '../suite/answers.ts';
import { BadFile, type FileIssue } from '../suite/file-issues.ts';
import { plannedCase } from '../suite/load-case.ts';
import type { EnvironmentParts } from '../suite/load-environment.ts';
import type { PlannedCase } from '../suite/plan.ts';
import { heldKey } from '../suite/read-file.ts';
import { SuiteReader } from '../suite/suite-reader.ts';
import type { TasksSource } from '../suite/tasks-source.ts';
import type { Path } from '../suite/yaml-file.ts';
import { caseOf, type TaskCase } from './case-of.ts';
import { TaskFiles } from './files-below.ts';
import { findTasks, selectTasks } from './find-tasks.ts';
import type { FoundTask } from './located.ts';
import { readTask } from './read-task.ts';
import type { Task } from './task.ts';
import { issueAt } from './task-folder.ts';

export interface TaskPlanParts extends Pick<EnvironmentParts, 'images' | 'keys'> {
  /** Folders that no task may read. */
  except: readonly string[];
}

/** A task that was chosen and that is not run. */
export interface LeftOut {
  id: string;
  /** `unreadable`: its files have problems. */
  state: 'does not run' | 'unreadable';
  reasons: readonly FileIssue[];
}

export interface PlannedTasks {
  cases: PlannedCase[];
  leftOut: LeftOut[];
}

interface LoadedTask {
  source: TaskCase;
  planned: PlannedCase;
  hiding: Hiding;
}

/** A task of a set, as a case or left out. */
type TaskOrLeftOut = ({ kind: 'case'; task: Task } & LoadedTask) | ({ kind: 'left out' } & LeftOut);

/**
 * The chosen tasks of a set as cases, and those that cannot run here. Throws an `input` error if there is no
 * task at the path, or none of a name that is asked for.
 */
export function planTasks(source: TasksSource, parts: TaskPlanParts): PlannedTasks {
  const cases: Pick<LoadedTask, 'planned' | 'hiding'>[] = [];
  const leftOut: LeftOut[] = [];
  for (const { kind, ...each } of plannedTasks(source, parts)) {
    if ('planned' in each) cases.push({ planned: each.planned, hiding: each.hiding });
    else leftOut.push(each);
  }
  return { cases: withGiven(cases), leftOut };
}

/** The same one after another, so that a caller need not hold the files of all tasks. */
export function* plannedTasks(
  { path, format, threshold, image, build, test, ...selection }: TasksSource,
  parts: TaskPlanParts,
): Generator<TaskOrLeftOut> {
  const setup = { image, build, test };
  for (const found of selectTasks(findTasks(path, format).tasks, selection))
    yield plannedTask({ ...found, setup }, threshold, parts);
}

function plannedTask(
  found: FoundTask,
  threshold: TasksSource['threshold'],
  parts: TaskPlanParts,
): TaskOrLeftOut {
  const leave = (state: LeftOut['state'], reasons: readonly FileIssue[]) =>
    ({ kind: 'left out', id: found.id, state, reasons }) as const;
  const read = readTask(found);
  if (read.kind === 'unreadable') return leave('unreadable', read.issues);
  if (read.kind === 'absent') return leave('does not run', read.obstacles);
  const { task } = read;
  if (task.obstacles.length > 0) return leave('does not run', task.obstacles);
  const loaded = loadTask(task, { ...parts, context: found.setup?.build?.context }, threshold);
  return 'issues' in loaded ? leave('unreadable', loaded.issues) : { kind: 'case', task, ...loaded };
}

/** Loads a task without obstacles as a case of a suite file, or returns what is wrong with its files. */
export function loadTask(
  task: Task,
  { except, images, keys, context }: TaskPlanParts & { context?: string | undefined },
  threshold?: TasksSource['threshold'],
): LoadedTask | { issues: readonly FileIssue[] } {
  const { place } = task;
  const within = [place, ...(context === undefined ? [] : [context])].map((path) => realpathSync(path));
  const reach = { within, except };
  try {
    const source = caseOf(task, threshold);
    const { entry, named, own } = source;
    // The files of each task are bounded, however many tasks there are.
    const files = new TaskFiles(place, named, { reach, keys });
    const suite = {
      file: place,
      value: { suite: { id: task.id }, trials: 1, variants: [], cases: [entry] },
      issue: ([, , ...path]: Path, message: string) => source.issue(path, message),
    };
    // So that the names of builds begin with the name of the task.
    const parts = { folder: dirname(place), files, reach, images, keys };
    const reader = new SuiteReader(suite, parts, { own });
    const prompt = { kind: 'text' as const, text: '{{instruction}}' };
    const loaded = plannedCase(entry, 0, prompt, reader, files);
    // Its files were checked when they were read.
    const held = keys?.findIn([loaded.planned.request, entry, [...named.values()]]);
    if (held) reader.issues.push(issueAt(place, heldKey(held.name)));
    return reader.issues.length > 0 ? reader : { source, ...loaded };
  } catch (error) {
    if (!(error instanceof BadFile)) throw error;
    return { issues: error.issues };
  }
}
