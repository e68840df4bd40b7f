import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { taskDigests } from '../../bounds/tasks.ts';
import { filesBelow, ignorePatterns } from '../files-below.ts';
import { TaskFolder } from '../task-folder.ts';

const files = ['task.toml', 'instruction.md', 'README.md', 'trajectory.json'];
const folders = ['environment', 'tests', 'solution', 'steps'];

/**
 * The digest of a task's files, as Harbor's data sets name it: `sha256:` and hexadecimal digits. Undefined if
 * the files are too large. Throws `BadFile` for a link that leads out of the task.
 */
export function taskDigest(path: string): string | undefined {
  const folder = new TaskFolder(path);
  const ignored = ignorePatterns(folder, '.gitignore');
  const below = folders.flatMap((name) => {
    const from = folder.folder(name);
    return from === undefined ? [] : filesBelow(folder, from, ignored).map((file) => `${name}/${file}`);
  });
  const names = [...files.filter((name) => folder.isFile(name)), ...below];
  const hash = createHash('sha256');
  let room: number = taskDigests.bytes.files;
  for (const name of names.toSorted()) {
    const read = fileDigest(folder.at(name), room);
    if (read === undefined) return undefined;
    room -= read.bytes;
    hash.update(`${name}\0${read.digest}\n`);
  }
  return `sha256:${hash.digest('hex')}`;
}

/**
 * The digest of a file in hexadecimal digits. Undefined for more bytes than `room`, and for what is no
 * regular file.
 */
export function fileDigest(path: string, room: number): { digest: string; bytes: number } | undefined {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    if (!fstatSync(descriptor).isFile()) return undefined;
    const hash = createHash('sha256');
    const part = Buffer.allocUnsafe(256 * 1024);
    let bytes = 0;
    for (let length = readSync(descriptor, part); length > 0; length = readSync(descriptor, part)) {
      bytes += length;
      if (bytes > room) return undefined;
      hash.update(part.subarray(0, length));
    }
    return { digest: hash.digest('hex'), bytes };
  } finally {
    closeSync(descriptor);
  }
}
