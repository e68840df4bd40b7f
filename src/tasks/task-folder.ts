import { lstatSync, realpathSync, statSync } from 'node:fs';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { taskSets } from '../bounds/tasks.ts';
import { BadFile, type FileIssue } from '../suite/file-issues.ts';
import { type Reach, readFile } from '../suite/read-file.ts';
import { readText } from '../suite/yaml-file.ts';

/** A folder that is not trusted: nothing outside it is read, and links that lead out of it are problems. */
export class TaskFolder {
  /** Absolute, as the user named it. */
  readonly path: string;
  readonly #real: string;

  /** Throws an error of the file system if there is no such folder. */
  constructor(path: string) {
    this.path = resolve(path);
    this.#real = realpathSync(this.path);
  }

  /** What {@link readText} and others may read. */
  get reach(): Reach {
    return { within: [this.#real], except: [] };
  }

  /** The absolute path of something in the folder, which need not exist. */
  at(...names: string[]): string {
    return join(this.path, ...names);
  }

  /** What is at a path in the folder. Throws {@link BadFile} if a link leads out of the folder. */
  kind(...names: string[]): 'file' | 'folder' | 'other' | undefined {
    const path = this.at(...names);
    try {
      if (!this.contains(realpathSync(path))) throw this.outside(path);
      const stats = statSync(path);
      if (stats.isFile()) return 'file';
      return stats.isDirectory() ? 'folder' : 'other';
    } catch (error) {
      if (!isMissing(error)) throw error;
      if (lstatSync(path, { throwIfNoEntry: false }) !== undefined)
        throw new BadFile([issueAt(path, 'is a link that leads nowhere')]);
      return undefined;
    }
  }

  /** Throws {@link BadFile} if there is no regular file at a path in the folder. */
  requireFile(...names: string[]): void {
    const kind = this.kind(...names);
    if (kind === 'file') return;
    const message = kind === undefined ? 'is missing' : 'is not a regular file';
    throw new BadFile([issueAt(this.at(...names), message)]);
  }

  isFile(...names: string[]): boolean {
    return this.kind(...names) === 'file';
  }

  /** The absolute path of a folder in this one; undefined if there is none. */
  folder(...names: string[]): string | undefined {
    return this.kind(...names) === 'folder' ? this.at(...names) : undefined;
  }

  /** The text of a file. Throws {@link BadFile} if it is missing, and `input` errors as `readText`. */
  text(...names: string[]): string {
    const path = this.at(...names);
    if (this.kind(...names) === undefined) throw new BadFile([issueAt(path, 'is missing')]);
    return readText(path, { reach: this.reach, maximumBytes: taskSets.bytes.text });
  }

  /**
   * The program that a script's first line names, with that line's argument, as a kernel would start it:
   * `#!/bin/bash -e` ends at the first failure, and `bash script` would not. `bash` for a script without such
   * a line, or if there is no script.
   */
  interpreter(...names: string[]): string[] {
    if (!this.isFile(...names)) return ['bash'];
    const { content } = readFile(this.at(...names), { reach: this.reach });
    const line = /^#![ \t]*(\S+)[ \t]*(.*)/.exec(content.toString('utf8', 0, firstLineBytes));
    const [, program = 'bash', argument = ''] = line ?? [];
    return argument.trim() === '' ? [program] : [program, argument.trim()];
  }

  /** Whether a path without links is in the folder, or is the folder. */
  contains(real: string): boolean {
    return isBelow(this.#real, real);
  }

  outside(path: string): BadFile {
    return new BadFile([issueAt(path, "is a link that leads out of the task's folder")]);
  }
}

/** Bytes of a script's first line that Linux reads. */
const firstLineBytes = 256;

/** Whether a path is that of a folder or of something in it. Compares only the texts of the paths. */
export function isBelow(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** An issue with a whole file or folder. */
export function issueAt(file: string, message: string): FileIssue {
  return { file, line: 1, column: 1, path: '', message };
}

function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ENOTDIR';
}
