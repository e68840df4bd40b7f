import { statSync } from 'node:fs';
import { join, posix } from 'node:path';
import type { PlacedFile } from '../suite/environment.ts';
import type { FileReader } from '../suite/file-reader.ts';
import { filesBelow } from './files-below.ts';
import type { PlacedFolder } from './task.ts';
import type { TaskFolder } from './task-folder.ts';

/**
 * The files, and the files of folders, that are put into a container, with their contents. Later folders
 * replace files of earlier ones. Links are followed, within the task. Throws `BadFile`, and `input` errors of
 * the reader.
 */
export function placedFiles(
  task: TaskFolder,
  folders: readonly PlacedFolder[],
  files: FileReader,
): PlacedFile[] {
  const placed = new Map<string, PlacedFile>();
  for (const { from, to, ignored } of folders) {
    const below = isFolder(from) ? filesBelow(task, from, ignored) : [''];
    for (const name of below) {
      const path = posix.join(to, name);
      const { content, isExecutable } = files.file(join(from, name));
      placed.set(path, { path, content, mode: isExecutable ? 0o755 : 0o644 });
    }
  }
  return [...placed.values()];
}

/** The folder in the container that has the files. */
export function folderOf({ from, to }: PlacedFolder): string {
  return isFolder(from) ? to : posix.dirname(to);
}

function isFolder(path: string): boolean {
  return statSync(path).isDirectory();
}
