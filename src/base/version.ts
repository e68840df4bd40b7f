import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The folders above this file that may be the package's: of the sources, and of the built program. */
const above = ['../../', '../../../'].map((path) => new URL(path, import.meta.url));

/** The version of this Offsite. */
export function versionOf(): string {
  for (const folder of above) {
    try {
      return String(JSON.parse(readFileSync(new URL('package.json', folder), 'utf8')).version);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return 'unknown';
}

/** The folder with `docs` and `examples` of this Offsite; undefined if they were not installed. */
export function documentsFolder(): string | undefined {
  const folder = above.find((each) => existsSync(new URL('docs/index.md', each)));
  return folder && fileURLToPath(folder);
}

/** The main file of the command line, as source or compiled like this file. */
export function programFile(): string {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return fileURLToPath(new URL(`../cli/main.${extension}`, import.meta.url));
}
