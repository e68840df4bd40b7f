import { readFileSync, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';

/** How many pages of 4 KiB an operation reads if none is in memory, and how many it changes. */
export interface PageCounts {
  read: number;
  written: number;
}

/** A page in the write-ahead log, with its header. */
const frameBytes = 4096 + 24;

/**
 * Counts the pages that `work` touches, which must be synchronous. The least of three times counts, because a
 * page that is full is split now and then. Needs Linux, and a database that no one else uses.
 */
export function countPages(database: DatabaseSync, work: () => void): PageCounts {
  database.exec('PRAGMA wal_checkpoint(TRUNCATE); PRAGMA wal_autocheckpoint = 0');
  const counts = [1, 2, 3].map((): PageCounts => {
    database.exec('PRAGMA shrink_memory');
    const logged = logBytes(database);
    const calls = readCalls();
    work();
    const read = readCalls() - calls - readCallsOfReading();
    return { read, written: Math.round((logBytes(database) - logged) / frameBytes) };
  });
  database.exec('PRAGMA wal_autocheckpoint = 1000');
  const least = (of: keyof PageCounts) => Math.min(...counts.map((one) => one[of]));
  return { read: least('read'), written: least('written') };
}

function logBytes(database: DatabaseSync): number {
  return statSync(`${database.location()}-wal`).size;
}

/** How many times this process has asked the kernel to read. SQLite reads each page on its own. */
function readCalls(): number {
  return Number(/^syscr: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);
}

/** To look at the count counts, too. */
function readCallsOfReading(): number {
  const before = readCalls();
  return readCalls() - before;
}
