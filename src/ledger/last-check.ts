import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';

/** Milliseconds for which a check holds. A disk may damage a file that nobody writes. */
const holdsFor = 24 * 60 * 60_000;

/**
 * When a database was last read as a whole and found sound, in epoch milliseconds; undefined if that is too
 * long ago, or if something else than Offsite has written to the file since. To read all of it takes about
 * 4 ms per MB, which everybody with many results would wait for at each start.
 */
export function lastCheck(file: string, now: number): number | undefined {
  try {
    const [checkedAt, left] = readFileSync(noteOf(file), 'utf8').split(' ');
    const age = now - Number(checkedAt);
    return age >= 0 && age < holdsFor && left === stateOf(file) ? Number(checkedAt) : undefined;
  } catch {
    return undefined;
  }
}

/** Notes how Offsite leaves a database that was checked then. */
export function noteCheck(file: string, checkedAt: number): void {
  try {
    const note = `${checkedAt} ${stateOf(file)}`;
    writeFileSync(noteOf(file), note, { mode: 0o600 });
  } catch {
    // The disk is full, or the folder is gone: the next start reads the whole file.
  }
}

/** Has the next start check the database: a statement met a damaged part. */
export function forgetCheck(file: string): void {
  rmSync(noteOf(file), { force: true });
}

function noteOf(file: string): string {
  return `${file}.checked`;
}

/** Changes with each write to a file. What is in its log (WAL) has checksums of SQLite. */
function stateOf(file: string): string {
  const { ino, size, ctimeNs } = statSync(file, { bigint: true });
  return `${ino}-${size}-${ctimeNs}`;
}
