import { relative, sep } from 'node:path';
import { OffsiteError } from '../base/offsite-error.ts';
import { imageSettings } from '../suite/dockerfile.ts';
import { isSharedFolder, workdirObstacle } from '../suite/environment.ts';
import { BadFile, type FileIssue } from '../suite/file-issues.ts';
import { taskDigest } from './harbor/dataset.ts';
import { readHarborTask } from './harbor/read-harbor.ts';
import type { FoundTask } from './located.ts';
import { Remarks } from './supported.ts';
import { readRow } from './swe-bench/row.ts';
import { rowAt } from './swe-bench/rows.ts';
import type { Task } from './task.ts';
import { isBelow, issueAt, TaskFolder } from './task-folder.ts';
import { readTerminalBenchTask } from './terminal-bench/read-terminal-bench.ts';

/** A task of a set, as far as it can be read. */
export type ReadTask =
  | { kind: 'task'; task: Task }
  /** Its files have problems. */
  | { kind: 'unreadable'; found: FoundTask; issues: readonly FileIssue[] }
  /** A data set names it, but it is not on this machine. */
  | { kind: 'absent'; found: FoundTask; obstacles: Task['obstacles'] };

/** Reads one task. Whatever is wrong with it is in the result, so that the others can be read. */
export function readTask(found: FoundTask): ReadTask {
  if (found.absent) {
    const remarks = new Remarks();
    remarks.uses('not-here', found.absent);
    return { kind: 'absent', found, obstacles: remarks.obstacles };
  }
  if (found.problem) return { kind: 'unreadable', found, issues: [found.problem] };
  try {
    return { kind: 'task', task: withRemarks({ ...readFound(found), id: found.id }, found) };
  } catch (error) {
    if (error instanceof BadFile) return { kind: 'unreadable', found, issues: error.issues };
    if (error instanceof OffsiteError || isOfFileSystem(error))
      return { kind: 'unreadable', found, issues: [issueAt(found.place, error.message)] };
    throw error;
  }
}

function readFound({ format, place, row, setup }: FoundTask): Task {
  switch (format) {
    case 'harbor':
      return readHarborTask(place);
    case 'terminal-bench':
      return readTerminalBenchTask(place);
    case 'swe-bench':
      if (!row) throw new Error('a task of SWE-bench has a row');
      return readRow(rowAt(place, row), { file: place, line: row.line }, setup);
  }
}

/** The task with what its image says, and what its data set says of it. */
function withRemarks(task: Task, { expected, remark }: FoundTask): Task {
  const remarks = new Remarks();
  recordImageSettings(task, remarks);
  if (remark) remarks.note('data-set', remark);
  if (expected) {
    const digest = taskDigest(task.place);
    if (digest === undefined)
      remarks.note('data-set', { ...expected.at, message: 'is too large to check its digest' });
    else if (digest !== expected.digest)
      remarks.uses('wrong-digest', { ...expected.at, message: `${task.id} has the digest ${digest}` });
  }
  return {
    ...task,
    notes: [...task.notes, ...remarks.notes],
    obstacles: [...task.obstacles, ...remarks.obstacles],
  };
}

function isOfFileSystem(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string';
}

/**
 * Records what the Dockerfile of a task's main container sets and Offsite does not do in the same way: an
 * entrypoint, which the formats' own programs start with the container, and a working folder that cannot be
 * the workspace.
 */
function recordImageSettings({ place, environment }: Task, remarks: Remarks): void {
  const { source, main } = environment;
  if (source.kind !== 'build') return;
  const { dockerfile: file, target } = source;
  // A Dockerfile elsewhere is an obstacle of its own.
  if (!isBelow(place, file)) return;
  const folder = new TaskFolder(place);
  const names = relative(place, file).split(sep);
  if (!folder.isFile(...names)) return;
  const { entrypointLine, workdir } = imageSettings(folder.text(...names), target);
  const at = (line: number, message: string) => ({ ...issueAt(file, message), line });
  if (entrypointLine !== undefined && main?.entrypoint === undefined)
    remarks.uses('image-entrypoint', at(entrypointLine, ''));
  if (!workdir || environment.workdir !== undefined) return;
  const { path, line } = workdir;
  if (path === '/') remarks.uses('root-workdir', at(line, ''));
  else if (isSharedFolder(path)) remarks.uses('shared-workdir', at(line, path));
  else if (workdirObstacle(path) !== undefined) remarks.uses('system-workdir', at(line, path));
}
