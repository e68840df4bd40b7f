import { relative, sep } from 'node:path';
import { imageSettings } from '../suite/dockerfile.ts';
import { isSharedFolder, workdirObstacle } from '../suite/environment.ts';
import type { Remarks } from './supported.ts';
import type { Task } from './task.ts';
import { isBelow, issueAt, TaskFolder } from './task-folder.ts';

/**
 * Records what the Dockerfile of a task's main container sets and Offsite does not do in the same way: an
 * entrypoint, which the formats' own programs start with the container, and a working folder that cannot be
 * the workspace.
 */
export function recordImageSettings({ place, environment }: Task, remarks: Remarks): void {
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
