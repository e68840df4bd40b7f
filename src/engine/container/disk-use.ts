import { spawn } from 'node:child_process';
import { type FileHandle, open, opendir, stat, statfs } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { archives, diskMeasure } from '../../bounds/sandbox.ts';
import { type DiskSpace, diskSpace } from './disk-space.ts';
import { readGroupFile } from './hosts-file.ts';
import { hostFactsOf, type RunningContainer } from './running-container.ts';

/** Linux's magic number for tmpfs, from statfs(2). Its files are in memory, which has its own limit. */
const tmpfs = 0x01021994;

/**
 * The bytes that a container takes on the engine's disk: the allocated blocks of its layer, its volumes and
 * the files that the engine mounts into it, and those of deleted files that its processes still have open or
 * mapped. Holes of sparse files take nothing. If this process cannot read the engine's disk as root, it is
 * the engine's own count, which is not true for sparse and for deleted files.
 */
export async function diskUse(container: RunningContainer, signal?: AbortSignal): Promise<number> {
  // What is written during the measurement may be missing in it.
  const before = await spaceOf(container, signal);
  const used = await measured(container, signal);
  container.diskSeen = { used, before };
  return used;
}

async function measured(container: RunningContainer, signal: AbortSignal | undefined): Promise<number> {
  const kept = await sumOf(container, 'blocks', signal);
  if (kept === undefined) return container.port.containers.writtenBytes(container.id, signal);
  return kept + (await deletedBytes(container, signal));
}

/** Whether {@link diskUse} reads the disk itself, so that it is exact. */
export async function isDiskVisible(container: RunningContainer, signal?: AbortSignal): Promise<boolean> {
  return (await spaceOf(container, signal)) !== undefined;
}

/** The space of the disk of a container; undefined if this process cannot see it. */
export async function spaceOf(
  container: RunningContainer,
  signal?: AbortSignal,
): Promise<DiskSpace | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const [layer] = (await hostFactsOf(container, signal)).storage;
  return layer === undefined ? undefined : await diskSpace(layer);
}

/** How many files and folders a container has made or changed; undefined if this process cannot see them. */
export function fileCount(container: RunningContainer, signal?: AbortSignal): Promise<number | undefined> {
  return sumOf(container, 'files', signal);
}

/**
 * The bytes of an image of a container. Images have no holes: a sparse file is stored there with its full
 * length. If this process cannot read the engine's disk as root, it is the engine's own count.
 */
export async function imageBytes(container: RunningContainer, signal?: AbortSignal): Promise<number> {
  const lengths = await sumOf(container, 'lengths', signal);
  return lengths ?? (await container.port.containers.writtenBytes(container.id, signal));
}

/**
 * Whether an archive with zeros in place of holes would be far longer than what a container takes. Undefined
 * if this process cannot read the engine's disk as root.
 */
export async function hasHoles(
  container: RunningContainer,
  signal?: AbortSignal,
): Promise<boolean | undefined> {
  const [lengths, blocks] = await Promise.all([
    sumOf(container, 'lengths', signal),
    sumOf(container, 'blocks', signal),
  ]);
  return lengths === undefined || blocks === undefined ? undefined : lengths - blocks > archives.bytes.dense;
}

/** What `du` adds up, with the unit of its numbers in bytes. */
const sums = {
  blocks: { options: ['-k'], unit: 1024 },
  lengths: { options: ['-k', '--apparent-size'], unit: 1024 },
  files: { options: ['--inodes'], unit: 1 },
};

/**
 * `du` counts a file with several names once, and reads paths that are too long for one call. Files may
 * disappear meanwhile. Undefined if it cannot read the first folder.
 */
async function sumOf(
  container: RunningContainer,
  what: keyof typeof sums,
  signal: AbortSignal | undefined,
): Promise<number | undefined> {
  const { storage } = await hostFactsOf(container, signal);
  const [layer] = storage;
  if (layer === undefined || process.getuid?.() !== 0) return undefined;
  const { options, unit } = sums[what];
  const program = spawn('du', ['-s', ...options, ...storage], {
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: diskMeasure.time.measure,
    signal,
  });
  // If it cannot run, or must not run any more, it says nothing.
  program.on('error', () => undefined);
  const said = await text(program.stdout).catch(() => '');
  signal?.throwIfAborted();
  const counted = said.split('\n').map((line) => /^(\d+)\t(.*)$/s.exec(line) ?? []);
  if (!counted.some(([, , path]) => path === layer)) return undefined;
  return counted.reduce((total, [, count]) => total + Number(count ?? 0) * unit, 0);
}

/** Deleted files have no name that `du` could find; the processes that use them do. */
async function deletedBytes(container: RunningContainer, signal?: AbortSignal): Promise<number> {
  const found = new Map<string, number>();
  for (const pid of await processIds(container)) {
    signal?.throwIfAborted();
    try {
      for await (const path of usedFiles(pid)) {
        const file = await stat(path).catch(() => undefined);
        if (!file?.isFile() || file.nlink > 0 || file.blocks === 0) continue;
        const { type } = await statfs(path).catch(() => ({ type: tmpfs }));
        // The unit of `blocks` is 512 bytes on every file system.
        if (type !== tmpfs) found.set(`${file.dev}:${file.ino}`, file.blocks * 512);
      }
    } catch (error) {
      // The process has ended, or this process may not look into it.
      if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    }
  }
  return [...found.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/** The files that a process has open, and the deleted ones that it has mapped. */
async function* usedFiles(pid: number): AsyncGenerator<string> {
  for await (const { name } of await opendir(`/proc/${pid}/fd`)) yield `/proc/${pid}/fd/${name}`;
  const maps: FileHandle = await open(`/proc/${pid}/maps`);
  for await (const line of maps.readLines())
    if (line.endsWith(' (deleted)')) yield `/proc/${pid}/map_files/${mappedRange(line)}`;
}

/** `maps` pads addresses with zeros; `map_files` does not. */
function mappedRange(line: string): string {
  const [from = '', to = ''] = (line.split(' ')[0] ?? '').split('-');
  return [from, to].map((address) => address.replace(/^0+(?=.)/, '')).join('-');
}

/** The processes of a container on this machine, init among them; empty if they cannot be seen. */
export async function processIds(container: RunningContainer): Promise<number[]> {
  const file = { controller: 'pids', version1: 'cgroup.procs', version2: 'cgroup.procs' } as const;
  const listed = (await readGroupFile(container, file)) ?? '';
  return listed
    .split('\n')
    .map(Number)
    .filter((pid) => pid > 0);
}

/**
 * Resolves with a function that kills all processes of a container but init at once, without the engine:
 * while the engine is asked, a process writes hundreds of megabytes. New ones may appear meanwhile, so the
 * engine must still end all. It does nothing where the container's processes cannot be seen.
 */
export async function fastKill(container: RunningContainer): Promise<() => void> {
  const { initPid } = await hostFactsOf(container);
  const others = (await processIds(container)).filter((pid) => pid !== initPid);
  return () => {
    for (const pid of others) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended meanwhile, or belongs to a user whose processes this one may not end.
      }
    }
  };
}
