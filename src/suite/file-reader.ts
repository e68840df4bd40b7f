import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { OffsiteError } from '../base/offsite-error.ts';
import { suiteFiles } from '../bounds/suite.ts';
import type { KnownKeys } from '../redaction/known-keys.ts';
import { BadFile, decodedText } from './file-issues.ts';
import { type Reach, type ReadFile, readFile } from './read-file.ts';

export interface FileReaderOptions {
  reach: Reach;
  /** Keys that no file may contain, because the service or a sandbox would get them. */
  keys?: KnownKeys | undefined;
}

/**
 * Reads the files of one suite or profile, up to a limit on all of them together. Throws `FILE_UNREADABLE`
 * and {@link BadFile}.
 */
export class FileReader {
  readonly #options: FileReaderOptions;
  readonly #read = { bytes: 0, files: 0 };

  constructor(options: FileReaderOptions) {
    this.#options = options;
  }

  file(path: string): ReadFile {
    const read = readFile(path, { reach: this.#options.reach });
    this.#read.bytes += read.content.length;
    this.#read.files++;
    if (this.#read.bytes > suiteFiles.bytes.all)
      throw tooMuch(
        `with ${path}, its files are larger than ${suiteFiles.bytes.all / 1024 ** 2} MiB together`,
      );
    const held = this.#options.keys?.find(read.content);
    if (held) {
      const { name, line, column } = held;
      throw new BadFile([{ file: path, line, column, path: '', message: heldKey(name) }]);
    }
    return read;
  }

  exists(path: string): boolean {
    return existsSync(path);
  }

  text(path: string): string {
    return decodedText(path, this.file(path).content);
  }

  /** Reads every file of a folder. `target` replaces the folder in their paths. Links are followed. */
  folder(folder: string, target: string, above: readonly string[] = []): (ReadFile & { path: string })[] {
    const { dev, ino } = statSync(folder);
    const identity = `${dev}:${ino}`;
    if (above.includes(identity)) throw tooMuch(`${folder} leads in a circle to a folder above it`);
    if (above.length > suiteFiles.count.depth)
      throw tooMuch(`${folder} is more than ${suiteFiles.count.depth} folders deep`);
    return readdirSync(folder)
      .toSorted()
      .flatMap((name) => {
        const path = join(folder, name);
        const below = posix.join(target, name);
        if (statSync(path).isDirectory()) return this.folder(path, below, [...above, identity]);
        if (this.#read.files >= suiteFiles.count.files)
          throw tooMuch(`it has more than ${suiteFiles.count.files} files`);
        return [{ path: below, ...this.file(path) }];
      });
  }
}

export function heldKey(name: string): string {
  return `holds the key in ${name}, which neither the service nor a sandbox may see`;
}

function tooMuch(message: string): OffsiteError {
  return new OffsiteError(message, { code: 'FILE_UNREADABLE', kind: 'input' });
}
