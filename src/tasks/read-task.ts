import { relative, sep } from 'node:path';
import { OffsiteError } from '../base/offsite-error.ts';
import { imageSettings } from '../suite/dockerfile.ts';
import { isSharedFolder, workdirObstacle } from '../suite/environment.ts';
import { BadFile, type FileIssue } from '../suite/file-issues.ts';
import { filesBelow } from './files-below.ts';
import { taskDigest } from './harbor/dataset.ts';
import { readHarborTask } from './harbor/read-harbor.ts';
import { type Obstacle, Remarks } from './supported.ts';
import { readRow } from './swe-bench/row.ts';
import { rowAt } from './swe-bench/rows.ts';
import type { FoundTask, Task } from './task.ts';
import { isBelow, issueAt, TaskFolder } from './task-folder.ts';
import { readTerminalBenchTask } from './terminal-bench/read-terminal-bench.ts';

/** A task of a set, as far as it can be read. */
export interface ReadTask {
  found: FoundTask;
  /** Undefined if its files have problems, or are not on this machine. */
  task?: Task;
  /** What is wrong with its files. */
  issues: readonly FileIssue[];
  /** Why it cannot run here. */
  obstacles: readonly Obstacle[];
}

/** Reads one task. Whatever is wrong with it is in the result, so that the others can be read. */
export function readTask(found: FoundTask): ReadTask {
  const unreadable = (issues: readonly FileIssue[]) => ({ found, issues, obstacles: [] });
  if (found.absent) {
    const remarks = new Remarks();
    remarks.uses('not-here', found.absent);
    return { found, issues: [], obstacles: remarks.obstacles };
  }
  if (found.problem) return unreadable([found.problem]);
  try {
    const task = readFound(found);
    requireFilesWithin(found, task);
    recordImageSettings(found, task);
    recordDataSet(found, task);
    return { found, task, issues: [], obstacles: task.remarks.obstacles };
  } catch (error) {
    if (error instanceof BadFile) return unreadable(error.issues);
    if (error instanceof OffsiteError || isOfFileSystem(error))
      return unreadable([issueAt(found.place, error.message)]);
    throw error;
  }
}

function readFound(found: FoundTask): Task {
  const { format, place, row, setup } = found;
  switch (format) {
    case 'harbor':
      return readHarborTask(found);
    case 'terminal-bench':
      return readTerminalBenchTask(found);
    case 'swe-bench':
      if (!row) throw new Error('a task of SWE-bench has a row');
      return readRow(rowAt(place, row), { file: place, line: row.line }, setup);
  }
}

/** Throws `BadFile` if a folder that is put into a container has a link that leads out of the task. */
function requireFilesWithin({ place }: FoundTask, { named }: Task): void {
  for (const each of named.values())
    for (const { from, ignored } of typeof each === 'string' ? [] : each)
      filesBelow(new TaskFolder(place), from, ignored);
}

/** Records what a data set says of a task. */
function recordDataSet({ id, place, expected, remark }: FoundTask, { remarks }: Task): void {
  if (remark) remarks.note('data-set', remark);
  if (!expected) return;
  const digest = taskDigest(place);
  if (digest === undefined)
    remarks.note('data-set', { ...expected.at, message: 'is too large to check its digest' });
  else if (digest !== expected.digest)
    remarks.uses('wrong-digest', { ...expected.at, message: `${id} has the digest ${digest}` });
}

function isOfFileSystem(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string';
}

/**
 * Records what the Dockerfile of a task's main container sets and Offsite does not do in the same way: an
 * entrypoint, which the formats' own programs start with the container, and a working folder that cannot be
 * the workspace.
 */
function recordImageSettings({ place }: FoundTask, { entry: { environment }, remarks }: Task): void {
  const { build, startUp, workdir: given } = environment ?? {};
  // A Dockerfile elsewhere is an obstacle of its own.
  if (!build || !isBelow(place, build.dockerfile)) return;
  const file = build.dockerfile;
  const folder = new TaskFolder(place);
  const names = relative(place, file).split(sep);
  if (!folder.isFile(...names)) return;
  const { entrypointLine, workdir } = imageSettings(folder.text(...names), build.target);
  const at = (line: number, message: string) => ({ ...issueAt(file, message), line });
  if (entrypointLine !== undefined && startUp?.entrypoint === undefined)
    remarks.uses('image-entrypoint', at(entrypointLine, ''));
  if (!workdir || given !== undefined) return;
  const { path, line } = workdir;
  if (path === '/') remarks.uses('root-workdir', at(line, ''));
  else if (isSharedFolder(path)) remarks.uses('shared-workdir', at(line, path));
  else if (workdirObstacle(path) !== undefined) remarks.uses('system-workdir', at(line, path));
}
