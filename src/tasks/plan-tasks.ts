import { realpathSync } from 'node:fs';
import { type Hiding, withGiven } from '../suite/answers.ts';
import { type Thresholds, thresholdsOf } from '../suite/case-tests.ts';
import { BadFile, type FileIssue } from '../suite/file-issues.ts';
import type { EnvironmentParts } from '../suite/load-environment.ts';
import type { PlannedCase } from '../suite/plan.ts';
import { FileReader } from '../suite/read-file.ts';
import type { TasksSource } from '../suite/tasks-source.ts';
import { caseOf, hidingOf } from './case-of.ts';
import { findTasks, selectTasks } from './find-tasks.ts';
import type { FoundTask } from './located.ts';
import { readTask } from './read-task.ts';
import type { Task } from './task.ts';

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

/** A task of a set, as a case or left out. */
export type TaskOrLeftOut =
  | { kind: 'case'; task: Task; planned: PlannedCase }
  | ({ kind: 'left out' } & LeftOut);

/**
 * The chosen tasks of a set as cases, and those that cannot run here. Throws an `input` error if there is no
 * task at the path, or none of a name that is asked for.
 */
export function planTasks(source: TasksSource, parts: TaskPlanParts): PlannedTasks {
  const cases: { planned: PlannedCase; hiding: Hiding }[] = [];
  const leftOut: LeftOut[] = [];
  for (const each of plannedTasks(source, parts)) {
    if (each.kind === 'case') {
      const { task, planned } = each;
      cases.push({ planned, hiding: hidingOf(task, planned.local.environment) });
    } else {
      const { kind, ...left } = each;
      leftOut.push(left);
    }
  }
  return { cases: withGiven(cases), leftOut };
}

/** The same one after another, so that a caller need not hold the files of all tasks. */
export function* plannedTasks(
  { path, format, threshold, image, build, test, ...selection }: TasksSource,
  parts: TaskPlanParts,
): Generator<TaskOrLeftOut> {
  const thresholds = thresholdsOf(threshold);
  const setup = { image, build, test };
  for (const found of selectTasks(findTasks(path, format).tasks, selection))
    yield plannedTask({ ...found, setup }, thresholds, parts);
}

function plannedTask(found: FoundTask, thresholds: Thresholds, parts: TaskPlanParts): TaskOrLeftOut {
  const leave = (state: LeftOut['state'], reasons: readonly FileIssue[]) =>
    ({ kind: 'left out', id: found.id, state, reasons }) as const;
  const read = readTask(found);
  if (read.kind === 'unreadable') return leave('unreadable', read.issues);
  if (read.kind === 'absent') return leave('does not run', read.obstacles);
  if (read.task.obstacles.length > 0) return leave('does not run', read.task.obstacles);
  const { context } = found.setup?.build ?? {};
  const planned = plannedCase(read.task, { ...parts, context }, thresholds);
  if ('issues' in planned) return leave('unreadable', planned.issues);
  return { kind: 'case', task: read.task, planned };
}

/** A task that has no obstacles as a case, or what is wrong with its files. */
export function plannedCase(
  task: Task,
  { except, images, keys, context }: TaskPlanParts & { context?: string | undefined },
  thresholds: Thresholds = thresholdsOf(),
): PlannedCase | { issues: readonly FileIssue[] } {
  const within = [task.place, ...(context === undefined ? [] : [context])].map((path) => realpathSync(path));
  const reach = { within, except };
  // The files of each task are bounded, however many tasks there are.
  const files = new FileReader({ reach, keys });
  try {
    return caseOf(task, { files, reach, images, keys, thresholds });
  } catch (error) {
    if (!(error instanceof BadFile)) throw error;
    return { issues: error.issues };
  }
}
