import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Hiding, withGiven } from '../suite/answers.ts';
import { BadFile, type FileIssue } from '../suite/file-issues.ts';
import { plannedCase } from '../suite/load-case.ts';
import type { PlannedCase } from '../suite/plan.ts';
import { heldKey } from '../suite/read-file.ts';
import type { CaseSource } from '../suite/suite-file.ts';
import { SuitePart, type SuiteReading } from '../suite/suite-part.ts';
import type { TasksSource } from '../suite/tasks-source.ts';
import type { Path } from '../suite/yaml-file.ts';
import { TaskFiles } from './files-below.ts';
import { findTasks, selectTasks } from './find-tasks.ts';
import { type ReadTask, readTask } from './read-task.ts';
import { caseIssue, type FoundTask, type Task } from './task.ts';
import { issueAt } from './task-folder.ts';

export interface TaskPlanParts extends Pick<SuiteReading, 'images' | 'keys'> {
  /** Folders that no task may read. */
  except: readonly string[];
}

/** A chosen task, with its case if it can run. */
export interface PlannedTask extends ReadTask {
  case?: {
    /** With the threshold that was asked for. */
    entry: CaseSource;
    planned: PlannedCase;
    hiding: Hiding;
  };
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

/**
 * The chosen tasks of a set as cases, and those that cannot run here. Throws an `input` error if there is no
 * task at the path, or none of a name that is asked for.
 */
export function planTasks(source: TasksSource, parts: TaskPlanParts): PlannedTasks {
  const cases: NonNullable<PlannedTask['case']>[] = [];
  const leftOut: LeftOut[] = [];
  for (const task of plannedTasks(source, parts)) {
    if (task.case) cases.push(task.case);
    else leftOut.push(leftOutOf(task));
  }
  return { cases: withGiven(cases), leftOut };
}

export function leftOutOf({ found: { id }, issues, obstacles }: PlannedTask): LeftOut {
  return issues.length > 0
    ? { id, state: 'unreadable', reasons: issues }
    : { id, state: 'does not run', reasons: obstacles };
}

/** The chosen tasks one after another, so that a caller need not hold the files of all. */
export function* plannedTasks(source: TasksSource, parts: TaskPlanParts): Generator<PlannedTask> {
  for (const found of selectTasks(findTasks(source.path, source.format).tasks, source))
    yield planTask(found, source, parts);
}

export function planTask(
  found: FoundTask,
  { image, build, test, threshold }: Omit<TasksSource, 'path'>,
  parts: TaskPlanParts,
): PlannedTask {
  const read = readTask({ ...found, setup: { image, build, test } });
  const { task, obstacles } = read;
  if (!task || obstacles.length > 0) return read;
  const within = [found.place, ...(build ? [build.context] : [])];
  const loaded = loadCase(task, withThreshold(task.entry, threshold), within, parts);
  return 'issues' in loaded ? { ...read, issues: loaded.issues } : { ...read, case: loaded };
}

function withThreshold(entry: CaseSource, threshold: TasksSource['threshold'] = 1): CaseSource {
  const { tests, overall } = entry;
  return {
    ...entry,
    ...(tests && { tests: { ...tests, threshold } }),
    ...(overall && { overall: { ...overall, threshold } }),
  };
}

/** Loads the case of a task as one of a suite file, or returns what is wrong with its files. */
function loadCase(
  task: Task,
  entry: CaseSource,
  within: readonly string[],
  { except, images, keys }: TaskPlanParts,
): NonNullable<PlannedTask['case']> | { issues: readonly FileIssue[] } {
  const { named, own } = task;
  const [place = ''] = within;
  const reach = { within: within.map((path) => realpathSync(path)), except };
  try {
    if (task.issues.length > 0) throw new BadFile(task.issues);
    // The files of each task are bounded, however many tasks there are.
    const files = new TaskFiles(place, named, { reach, keys });
    const suite = {
      file: place,
      value: { suite: { id: entry.id }, trials: 1, variants: [], cases: [entry] },
      issue: ([, , ...path]: Path, message: string) => caseIssue(task, path, message),
    };
    // So that the names of builds begin with the name of the task.
    const folder = dirname(place);
    const reader = new SuitePart({ yaml: suite, folder, files, reach, images, keys, own: { own } });
    const prompt = { kind: 'text' as const, text: '{{instruction}}' };
    const loaded = plannedCase(entry, reader.at('cases', 0), prompt, files);
    // Its files were checked when they were read.
    const held = keys?.findIn([loaded.planned.request, entry, [...named.values()]]);
    if (held) reader.issues.push(issueAt(place, heldKey(held.name)));
    return reader.issues.length > 0 ? reader : { entry, ...loaded };
  } catch (error) {
    if (!(error instanceof BadFile)) throw error;
    return { issues: error.issues };
  }
}
