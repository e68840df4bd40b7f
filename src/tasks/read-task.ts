import { OffsiteError } from '../offsite-error.ts';
import { BadFile, type FileIssue } from '../suite/file-issues.ts';
import { taskDigest } from './harbor/digest.ts';
import { readHarborTask } from './harbor/read-harbor.ts';
import { recordImageSettings } from './image-settings.ts';
import type { FoundTask } from './located.ts';
import { Remarks } from './supported.ts';
import { readRow } from './swe-bench/row.ts';
import { rowAt } from './swe-bench/rows.ts';
import type { Task } from './task.ts';
import { issueAt } from './task-folder.ts';
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
