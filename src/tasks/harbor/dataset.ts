import { createHash } from 'node:crypto';
import { closeSync, constants, existsSync, fstatSync, openSync, readSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { taskDigests, taskSets } from '../../bounds/tasks.ts';
import { BadFile } from '../../suite/file-issues.ts';
import { readText } from '../../suite/yaml-file.ts';
import { checkDocument, jsonDocument } from '../document.ts';
import { filesBelow, ignorePatterns } from '../files-below.ts';
import { Remarks } from '../supported.ts';
import type { FoundTask, FoundTasks } from '../task.ts';
import { isBelow, issueAt, TaskFolder } from '../task-folder.ts';
import { readTomlFile } from '../toml-file.ts';

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
function fileDigest(path: string, room: number): { digest: string; bytes: number } | undefined {
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

const Digest = z.string().regex(/^sha256:[0-9a-f]{64}$/, 'expected sha256: and 64 hexadecimal digits');

const DatasetToml = z.object({
  dataset: z.object({
    name: z.string().min(1),
    version: z.string().optional(),
    description: z.string().optional(),
    keywords: z.array(z.string()).optional(),
    authors: z.array(z.object({ name: z.string().optional(), email: z.string().optional() })).optional(),
  }),
  tasks: z.array(z.object({ name: z.string().min(1), digest: Digest.optional() })).default([]),
  // For other programs than the agent and its tests.
  files: z.array(z.object({ path: z.string().min(1), digest: Digest.optional() })).optional(),
});

/**
 * The tasks that a folder's `dataset.toml` names, which are found by the last part of their names. Those that
 * are not in the folder, and those that it does not name, are reported.
 */
export function readDataset(folder: string, found: FoundTasks): FoundTasks {
  const remarks = new Remarks();
  const own = new TaskFolder(folder);
  // Throws for a link that leads elsewhere.
  own.kind('dataset.toml');
  const document = readTomlFile(own.at('dataset.toml'), {
    reach: own.reach,
    maximumBytes: taskSets.bytes.dataset,
  });
  const { tasks: named } = checkDocument(document, DatasetToml, remarks);
  const byId = new Map(found.tasks.toReversed().map((task) => [task.id, task]));
  const ids = new Set(named.map(({ name }) => basename(name)));
  const tasks = named.map(({ name, digest }, index): FoundTask => {
    const id = basename(name);
    const at = document.issue(['tasks', index, 'name'], name);
    const task = byId.get(id);
    if (!task) return { id, format: 'harbor', place: join(folder, id), absent: at };
    return digest === undefined ? task : { ...task, expected: { digest, at } };
  });
  const others = found.tasks.filter((task) => byId.get(task.id) !== task || !ids.has(task.id));
  const remarked = others.map((task) => ({
    ...task,
    remark: issueAt(task.place, `is not named in ${document.file}`),
  }));
  return { tasks: [...tasks, ...remarked], notes: [...found.notes, ...remarks.notes] };
}

const Registry = z.array(
  z.object({
    name: z.string().min(1),
    version: z.string().optional(),
    description: z.string().optional(),
    tasks: z.array(
      z.object({
        name: z.string().min(1),
        git_url: z.string().nullish(),
        git_commit_id: z.string().nullish(),
        path: z.string().min(1),
      }),
    ),
  }),
);

/** Whether a file looks like a registry, and not like a file of another program with the same name. */
export function isRegistry(file: string): boolean {
  try {
    return Array.isArray(jsonDocument(readJson(file), { file }).value);
  } catch {
    return false;
  }
}

/**
 * The tasks that an older registry names. Those that are folders beside it can be read. The others would have
 * to be fetched. Throws {@link BadFile}.
 */
export function readRegistry(file: string): FoundTasks {
  const remarks = new Remarks();
  const document = jsonDocument(readJson(file), { file });
  const registry = checkDocument(document, Registry, remarks);
  const folder = dirname(file);
  const count = registry.reduce((sum, { tasks }) => sum + tasks.length, 0);
  if (count > taskSets.count.tasks)
    throw new BadFile([issueAt(file, `has more than ${taskSets.count.tasks} tasks`)]);
  const tasks = registry.flatMap(({ tasks }, set) =>
    tasks.map(({ name, path, git_url: url, git_commit_id: commit }, index): FoundTask => {
      const place = join(folder, path);
      const id = basename(name);
      if (isBelow(folder, place) && isTaskIn(folder, place)) return { id, format: 'harbor', place };
      const from = [url, commit, path].filter((part) => part != null).join(' ');
      return { id, format: 'harbor', place, absent: document.issue([set, 'tasks', index], from) };
    }),
  );
  return { tasks, notes: remarks.notes };
}

/** Whether a folder is a task, and no link leads from it to elsewhere. */
function isTaskIn(folder: string, place: string): boolean {
  return existsSync(join(place, 'task.toml')) && isBelow(realpathSync(folder), realpathSync(place));
}

function readJson(file: string): string {
  const folder = new TaskFolder(dirname(file));
  // Throws for a link that leads elsewhere.
  folder.kind(basename(file));
  return readText(file, { reach: folder.reach, maximumBytes: taskSets.bytes.json });
}
