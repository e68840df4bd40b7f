import { realpathSync } from 'node:fs';
import type { Thresholds } from '../suite/case-tests.ts';
import { BadFile, type FileIssue } from '../suite/file-issues.ts';
import { FileReader } from '../suite/file-reader.ts';
import type { EnvironmentParts } from '../suite/load-environment.ts';
import type { PlannedCase } from '../suite/plan.ts';
import type { TasksSource } from '../suite/tasks-source.ts';
import { caseOf } from './case-of.ts';
import { findTasks } from './find-tasks.ts';
import { readTask } from './read-task.ts';
import { selectTasks } from './selection.ts';

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

/**
 * The chosen tasks of a set as cases, and those that cannot run here. Throws an `input` error if there is no
 * task at the path, or none of a name that is asked for.
 */
export function planTasks(
  { path, format, threshold, image, build, test, ...selection }: TasksSource,
  { except, images, keys }: TaskPlanParts,
): PlannedTasks {
  const chosen = selectTasks(findTasks(path, format).tasks, selection);
  const within = chosen.filter(({ absent }) => !absent).map(({ place }) => realpathSync(place));
  if (build) within.push(realpathSync(build.context));
  const reach = { within, except };
  const files = new FileReader({ reach, keys });
  const thresholds = thresholdsOf(threshold);
  const planned: PlannedTasks = { cases: [], leftOut: [] };
  for (const found of chosen) {
    const { id } = found;
    const read = readTask({ ...found, setup: { image, build, test } });
    const leave = (state: LeftOut['state'], reasons: readonly FileIssue[]) =>
      planned.leftOut.push({ id, state, reasons });
    if (read.kind === 'unreadable') leave('unreadable', read.issues);
    else if (read.kind === 'absent') leave('does not run', read.obstacles);
    else if (read.task.obstacles.length > 0) leave('does not run', read.task.obstacles);
    else {
      try {
        planned.cases.push(caseOf(read.task, { files, reach, images, keys, thresholds }));
      } catch (error) {
        if (!(error instanceof BadFile)) throw error;
        leave('unreadable', error.issues);
      }
    }
  }
  return planned;
}

function thresholdsOf(threshold: TasksSource['threshold'] = 1): Thresholds {
  return typeof threshold === 'number'
    ? { default: threshold, byName: {} }
    : { default: 1, byName: threshold };
}
