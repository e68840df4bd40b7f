import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { projectFiles } from '../../bounds/anyone.ts';
import { readText } from '../../suite/yaml-file.ts';

/** The files that show what a project is, wherever they are read from. */
export interface ProjectFiles {
  /** Whether its root has a file or folder of this name. */
  has(name: string): boolean;
  /** The text of a file in its root. A file that is missing, too large or unreadable has none. */
  text(name: string): string | undefined;
  /** The texts of some of its tests in Python. */
  pythonTests(): string[];
}

/** The files of a project in a folder. */
export function filesIn(folder: string): ProjectFiles {
  return {
    has: (name) => existsSync(join(folder, name)),
    text: (name) => textIn(folder, name),
    pythonTests: () =>
      ['', 'tests', 'test']
        .flatMap((below) => namesIn(join(folder, below)).map((name) => join(below, name)))
        .filter((path) => /(^|\/)test_[^/]*\.py$|_test\.py$/.test(path))
        .slice(0, projectFiles.count.tests)
        .flatMap((path) => textIn(folder, path) ?? []),
  };
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

function textIn(folder: string, name: string): string | undefined {
  const file = join(folder, name);
  if (!existsSync(file)) return undefined;
  try {
    return readText(file, { maximumBytes: projectFiles.bytes.file });
  } catch {
    return undefined;
  }
}
