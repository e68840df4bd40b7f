import { relative, sep } from 'node:path';
import { entrypointLine } from '../suite/dockerfile.ts';
import type { Remarks } from './supported.ts';
import type { Task } from './task.ts';
import { isBelow, issueAt, TaskFolder } from './task-folder.ts';

/**
 * Says if the image of a task's main container has an entrypoint, which the formats' own programs start with
 * the container: it may start servers, or change files that the task is about.
 */
export function useEntrypoint({ place, environment: { source, main } }: Task, remarks: Remarks): void {
  if (source.kind !== 'build' || main?.entrypoint !== undefined) return;
  const { dockerfile: file, target } = source;
  // Other places are obstacles of their own.
  if (!isBelow(place, file)) return;
  const folder = new TaskFolder(place);
  const names = relative(place, file).split(sep);
  if (!folder.isFile(...names)) return;
  const line = entrypointLine(folder.text(...names), target);
  if (line !== undefined) remarks.uses('image-entrypoint', { ...issueAt(file, ''), line });
}
