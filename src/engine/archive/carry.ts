import { posix } from 'node:path';
import type { Readable } from 'node:stream';
import { infrastructureError, type OffsiteError } from '../../base/offsite-error.ts';
import { PathRoom } from '../../base/path-room.ts';
import { type ArchivedType, nameText, pathMax } from './entries.ts';
import {
  type MaybeSparse,
  sizeLimit,
  tarBeside,
  tarInstead,
  transferDeadline,
  unpackArchive,
  watchHoles,
} from './raw-archive.ts';
import { innerPath, typeOf } from './read.ts';
import type { TarProgram } from './tar-program.ts';
import { bytesAfter, rewritten } from './write-archive.ts';

export interface CarryRequest {
  /**
   * Whether an entry is copied. `path` is relative to the path that is copied; '' is that path itself. A
   * folder that is not copied is left out with everything below it.
   */
  keeps(path: string, type: ArchivedType): boolean;
  /**
   * `inside`: only links that lead to something below the copied path, and no pipes and no setuid and setgid
   * bits.
   */
  links: 'all' | 'inside';
  /** Bytes of all files. Holes count where no program can find them. */
  maxBytes: number;
  maxEntries: number;
  signal: AbortSignal;
}

export interface Carried {
  bytes: number;
  entries: number;
  /** Paths that were to be copied and were not: devices, pipes, links that lead elsewhere. */
  leftOut: string[];
}

/**
 * Copies a file or folder from one container to the same path of another, entry by entry, without devices and
 * capabilities. Nothing is unpacked here, and no program of a container takes part. Existing files in the
 * target stay unless they have the same name. Holes of large files stay holes where GNU tar of Offsite's
 * image can run beside both containers. Throws `ENGINE_NOT_FOUND`, and `ENGINE_TOO_LARGE` for more than the
 * request allows.
 */
export async function carryBetween(
  from: MaybeSparse,
  to: string,
  path: string,
  request: CarryRequest,
): Promise<Carried> {
  const { port, id } = from;
  const { signal } = request;
  const beforeFile = await watchHoles(from, signal);
  const source = await port.containers.getArchive(id, path, signal, { owners: true });
  const carried = nothingCarried();
  const archive = kept(source, path, { ...request, beforeFile }, carried);
  try {
    using _deadline = transferDeadline(port, source, signal);
    await unpackArchive(port, { id: to, path, folder: '/' }, archive, signal);
    return carried;
  } catch (error) {
    source.destroy();
    return await carryWith(await tarInstead(error, from), from, to, path, request);
  } finally {
    source.destroy();
    archive.destroy();
  }
}

/** The same with GNU tar at both ends. */
async function carryWith(
  tar: TarProgram,
  from: MaybeSparse,
  to: string,
  path: string,
  request: CarryRequest,
): Promise<Carried> {
  const { signal } = request;
  const into = await tarBeside(from, to);
  if (into === undefined) throw new Error('the same engine has the program for one container only');
  await using source = await tar.read(path, signal);
  const carried = nothingCarried();
  await into.write(kept(source.archive, path, request, carried), signal);
  await source.complete();
  return carried;
}

function nothingCarried(): Carried {
  return { bytes: 0, entries: 0, leftOut: [] };
}

/** The archive with only what is copied, under names that are relative to the root. */
function kept(
  source: Readable,
  root: string,
  {
    keeps,
    links,
    maxBytes,
    maxEntries,
    beforeFile,
  }: CarryRequest & { beforeFile?: (size: number) => Promise<void> },
  carried: Carried,
): Readable {
  const declare = sizeLimit(maxBytes, root);
  const room = new PathRoom();
  const notCarried = new Set<string>();
  let leftFolder: string | undefined;
  const isLeft = (path: string) => leftFolder !== undefined && path.startsWith(leftFolder);
  // An engine leaves out such paths when it reads them, and GNU tar cannot make them.
  const isTooDeep = (path: Buffer) => 1 + at(root, path).length >= pathMax;
  /** Whether the file that a hard link names was copied before it. */
  const isThere = (path: string) =>
    !notCarried.has(path) && foldersAbove(path).every((above) => keeps(above, 'folder'));
  let seen = 0;
  return rewritten(source, async (header) => {
    seen += 1;
    const path = innerPath(header.name);
    const type = typeOf(header);
    if (seen > maxEntries) throw tooMany(root);
    if (isLeft(path.text)) return undefined;
    const leave = (isTold: boolean) => {
      if (!room.take(path.text)) throw tooMany(root);
      if (isTold) carried.leftOut.push(path.text);
      if (type === 'folder') leftFolder = path.text === '' ? '' : `${path.text}/`;
      else notCarried.add(path.text);
      return undefined;
    };
    if (isTooDeep(path.bytes)) return leave(true);
    if (!keeps(path.text, type)) return leave(false);
    const target = type === 'hardlink' ? innerPath(header.linkName) : undefined;
    const mayCopy =
      type === 'file' ||
      type === 'folder' ||
      (type === 'fifo' && links === 'all') ||
      (target && !isTooDeep(target.bytes) && isThere(target.text)) ||
      (type === 'symlink' && (links === 'all' || leadsInside(root, path.text, nameText(header.linkName))));
    if (!mayCopy) return leave(true);
    const size = bytesAfter(header);
    await beforeFile?.(size);
    declare(size);
    carried.bytes += size;
    carried.entries += 1;
    return {
      ...header,
      mode: links === 'all' ? header.mode : header.mode & plainBits,
      flag: header.flag === '7' ? '0' : header.flag,
      name: at(root, path.bytes),
      linkName: target ? at(root, target.bytes) : type === 'symlink' ? header.linkName : Buffer.alloc(0),
    };
  });
}

/** Permissions and the sticky bit. */
const plainBits = 0o1777;

function at(root: string, path: Buffer): Buffer {
  const folder = Buffer.from(posix.relative('/', root));
  return path.length === 0 ? folder : Buffer.concat([folder, Buffer.from('/'), path]);
}

/** `''`, `a` and `a/b` for `a/b/c`. */
function foldersAbove(path: string): string[] {
  if (path === '') return [];
  const parts = path.split('/').slice(0, -1);
  return ['', ...parts.map((_, index) => parts.slice(0, index + 1).join('/'))];
}

function tooMany(path: string): OffsiteError {
  return infrastructureError('ENGINE_TOO_LARGE', `${path} has too many files to copy`);
}

/**
 * Whether a link below a folder leads to something in that folder, judged by the target's text alone. A
 * target may begin with `..`, since the folder that holds the link is not itself a link. After that it may
 * not have `..`: after another link, that could lead anywhere.
 *
 * @param root the folder's absolute path
 * @param path the link's path, relative to `root`
 */
export function leadsInside(root: string, path: string, target: string): boolean {
  const parts = target.split('/').filter((part) => part !== '' && part !== '.');
  if (target.startsWith('/')) {
    const isBelow = `/${parts.join('/')}/`.startsWith(`${root}/`);
    return isBelow && !parts.includes('..');
  }
  const names = parts.findIndex((part) => part !== '..');
  const ups = names === -1 ? parts.length : names;
  const depth = path.split('/').length - 1;
  return path !== '' && ups <= depth && !parts.slice(ups).includes('..');
}
