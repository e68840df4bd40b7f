import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { OffsiteError } from '../offsite-error.ts';
import type { PlannedCase } from './plan.ts';
import { type Reach, reachedFolder } from './read-file.ts';
import type { TasksSource } from './tasks-source.ts';

/** Makes cases of the tasks at an absolute path. */
export type PlanTasks = (source: TasksSource) => PlannedCase[];

/** A source with absolute paths. */
export function sourceIn(folder: string, { path, build, ...source }: TasksSource): TasksSource {
  const context = build && { build: { ...build, context: resolve(folder, build.context) } };
  return { ...source, path: resolve(folder, path), ...context };
}

/** The cases of a suite's `tasks`. Throws `input` errors, and errors of the file system. */
export function casesOfTasks(
  source: TasksSource,
  reach: Exclude<Reach, 'anywhere'>,
  plan: PlanTasks | undefined,
): PlannedCase[] {
  if (!plan) throw refused('this command takes no tasks: use `offsite run` or `offsite check`');
  const isFolder = statSync(source.path).isDirectory();
  reachedFolder(isFolder ? source.path : dirname(source.path), reach);
  if (source.build) reachedFolder(source.build.context, reach);
  const cases = plan(source);
  if (cases.length === 0) throw refused('none of these tasks can run here');
  return cases;
}

function refused(message: string): OffsiteError {
  return new OffsiteError(message, { code: 'NO_TASKS', kind: 'input' });
}
