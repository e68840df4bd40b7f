import { readFileSync } from 'node:fs';

/** The version of this Offsite. */
export function versionOf(): string {
  const candidates = ['../../package.json', '../../../package.json'].map(
    (path) => new URL(path, import.meta.url),
  );
  for (const file of candidates) {
    try {
      return String(JSON.parse(readFileSync(file, 'utf8')).version);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return 'unknown';
}
