import { createHash, randomUUID } from 'node:crypto';
import { closeSync, ftruncateSync, openSync, readSync, statfsSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import picomatch from 'picomatch';
import { PathRoom } from '../../base/path-room.ts';
import { pathLists, workspaceFiles } from '../../bounds/sandbox.ts';
import type { ArchivedEntry } from '../../engine/archive/entries.ts';
import type { ArchiveCopy } from '../../engine/archive/read.ts';
import {
  type FileFacts,
  type Manifest,
  manifestChanges,
  readManifest,
} from '../../engine/archive/stored-file.ts';
import { changedPaths } from '../../engine/changes/changed-paths.ts';
import type { Container } from '../../engine/container.ts';
import { isEngineFailure } from '../../engine/port/failure.ts';
import type { BlobStore } from '../../ledger/blobs.ts';
import type { FileChange, FileVersion } from '../../record/files.ts';

/** A workspace's entries by relative path, or `large` if it is too large to read as a whole. */
export type WorkspaceState = Manifest | 'large';

class TooLarge extends Error {}

/**
 * Reads the state of a sandbox's workspace. `visit` may read the content of entries on the way. If the result
 * is `large`, discard what `visit` has read. Throws `ENGINE_NOT_FOUND` if there is no workspace.
 */
export async function readWorkspace(
  container: Container,
  signal: AbortSignal,
  visit?: (entry: ArchivedEntry) => Promise<void>,
  copy?: ArchiveCopy,
): Promise<WorkspaceState> {
  try {
    const entries = container.archive(container.workingDir, signal, undefined, copy);
    return await readManifest(withinLimits(entries), visit);
  } catch (error) {
    if (error instanceof TooLarge) return 'large';
    throw error;
  }
}

async function* withinLimits(archive: AsyncIterable<ArchivedEntry>): AsyncGenerator<ArchivedEntry> {
  let bytes = 0;
  let entries = 0;
  const room = new PathRoom();
  for await (const entry of archive) {
    bytes += entry.size;
    entries += 1;
    const hasRoom = room.take(entry.path) && room.take(entry.linkTarget ?? '');
    const isLarge = bytes > workspaceFiles.bytes.whole || entries > workspaceFiles.count.entries;
    if (isLarge || !hasRoom) throw new TooLarge();
    yield entry;
  }
}

/** The maximum bytes of a workspace that is read as a whole. */
export const smallWorkspace = workspaceFiles.bytes.whole;

/** The bytes of a block, which a file takes at least in part, and so does its place in its folder. */
const blockBytes = 4096;

/**
 * The bytes of the disk that all files in a workspace take without holes. Call this only before the harness
 * runs: it has no limit.
 */
export async function workspaceBytes(container: Container, signal: AbortSignal): Promise<number> {
  let bytes = 0;
  for await (const { size } of container.archive(container.workingDir, signal))
    bytes += (Math.ceil(size / blockBytes) + 1) * blockBytes;
  return bytes;
}

/**
 * Workspace-relative paths that differ between two states: added, edited, deleted, or with another mode. A
 * rename gives both names. A folder is listed if it was added or removed empty or has another mode, not
 * because something inside it changed.
 */
export function changedFiles(
  before: Exclude<WorkspaceState, 'large'>,
  after: Exclude<WorkspaceState, 'large'>,
): string[] {
  const changes = manifestChanges(before, after);
  const parents = new Set(changes.map(({ path }) => path.slice(0, Math.max(0, path.lastIndexOf('/')))));
  const isFolder = (path: string) => (after.get(path) ?? before.get(path))?.type === 'folder';
  return changes
    .filter(({ path, kind }) => path !== '' && (kind === 'modified' || !isFolder(path) || !parents.has(path)))
    .map(({ path }) => path);
}

/**
 * The same, for workspaces that are too large to read: from the sandbox's own layer, or from the engine's
 * list of changes. It names a deleted folder but not the files in it. If there are very many changes, it
 * returns only the first ones. An engine that lists no changes, for example because a path is too long for
 * it, leaves only the workspace itself to name.
 */
export async function reportedFiles(container: Container, signal: AbortSignal): Promise<string[]> {
  const { workingDir } = container;
  try {
    const { paths } = await changedPaths(container, { wanted: 'reported', below: workingDir, signal });
    return paths.map((path) => path.slice(workingDir.length + 1));
  } catch (error) {
    if (!isEngineFailure(error, 'refused')) throw error;
    return ['.'];
  }
}

/**
 * Returns a function that says whether a path matches one of the globs. An agent can make paths for which
 * matching takes seconds and blocks this process. So a path with more characters or folders than {@link
 * pathLists} allows is not matched at all.
 *
 * @param unmatched the result for such a path
 */
export function globMatcher(globs: readonly string[], unmatched: boolean): (path: string) => boolean {
  if (globs.length === 0) return () => false;
  // With the flag `s`, `**` also matches line breaks.
  const matches = picomatch([...globs], { dot: true, flags: 's' });
  return (path) => (isLong(path) ? unmatched : matches(path));
}

function isLong(path: string): boolean {
  return (
    path.length > pathLists.bytes.matched ||
    path.split('/', pathLists.count.matchedFolders + 2).length > pathLists.count.matchedFolders + 1
  );
}

/** Contents that are stored at the same time. */
const writtenAtATime = 16;

type Visit = (entry: ArchivedEntry) => Promise<void>;

/** Passes files on to `next`; `found` gets the content of those that are small enough to be kept. */
export function smallFiles(found: (path: string, content: Buffer) => void, next?: Visit): Visit {
  return async (entry) => {
    if (entry.type !== 'file' || entry.size > workspaceFiles.bytes.text) return next?.(entry);
    const content = Buffer.concat(await Array.fromAsync(entry.content()));
    found(entry.path, content);
    await next?.({ ...entry, content: () => once(content) });
  };
}

async function* once(content: Buffer): AsyncGenerator<Buffer> {
  yield content;
}

/** Keeps the texts of a prepared workspace while it is read. */
export function keepTexts(pack: TextPack): Visit {
  return smallFiles((_, content) => {
    const sha256 = sha256Of(content);
    if (isText(content)) pack.put(sha256, content);
    else pack.addBinary(sha256);
  });
}

/** Keeps the texts of changed files while the workspace is read after the harness worked in it. */
export class ChangedTexts {
  readonly #before: Manifest;
  readonly #pack: TextPack;
  /** By sha256. Absent: too large. `omitted`: why it is not kept. */
  readonly #found = new Map<
    string,
    { content?: Buffer; byteSize: number; omitted?: FileChange['omitted'] }
  >();
  /** New files have their own share, so that a build's output leaves room for what was edited. */
  readonly #rooms = { added: room(), modified: room() };

  constructor(before: Manifest, pack: TextPack) {
    this.#before = before;
    this.#pack = pack;
  }

  /** Sees the files of a workspace, and passes them on. */
  visitor(next: Visit): Visit {
    return smallFiles((path, content) => this.#consider(path, content), next);
  }

  #consider(path: string, content: Buffer): void {
    const sha256 = sha256Of(content);
    const was = this.#before.get(path);
    if (was?.sha256 === sha256 || this.#found.has(sha256)) return;
    const byteSize = content.byteLength;
    if (!isText(content)) this.#found.set(sha256, { byteSize, omitted: 'binary' });
    else if (!this.#rooms[was ? 'modified' : 'added'].take(byteSize))
      this.#found.set(sha256, { byteSize, omitted: 'room' });
    else this.#found.set(sha256, { content, byteSize });
  }

  /**
   * What changed at each path, with the texts as blobs.
   *
   * @param paths the changed paths, of which the first ones are described
   */
  async changes(paths: readonly string[], after: Manifest, blobs: BlobStore): Promise<FileChange[]> {
    const earlier = room();
    const described = paths.slice(0, workspaceFiles.count.changes);
    const changes: FileChange[] = [];
    // Each write waits for the disk, so several run at a time.
    for (let at = 0; at < described.length; at += writtenAtATime) {
      const some = described.slice(at, at + writtenAtATime);
      changes.push(...(await Promise.all(some.map((path) => this.#change(path, after, blobs, earlier)))));
    }
    return changes;
  }

  async #change(path: string, after: Manifest, blobs: BlobStore, earlier: Room): Promise<FileChange> {
    const [was, is] = [this.#before.get(path), after.get(path)];
    const sameContent = was !== undefined && was.sha256 === is?.sha256;
    const before =
      was && (await this.#version(was, sameContent, blobs, () => this.#textBefore(was, earlier)));
    const now = is && (await this.#version(is, sameContent, blobs, () => this.#textAfter(is)));
    const omitted = now?.omitted ?? before?.omitted;
    return {
      path,
      kind: was === undefined ? 'added' : is === undefined ? 'deleted' : 'modified',
      ...(before && { before: before.version }),
      ...(now && { after: now.version }),
      ...(omitted && { omitted }),
    };
  }

  async #version(facts: FileFacts, sameContent: boolean, blobs: BlobStore, text: () => Text) {
    const { type, mode, linkTarget } = facts;
    const version: FileVersion = { type, mode, ...(linkTarget !== undefined && { linkTarget }) };
    if (facts.sha256 === undefined || sameContent) return { version, omitted: undefined };
    const { content, byteSize, omitted } = text();
    if (byteSize !== undefined) version.byteSize = byteSize;
    if (content) version.content = (await blobs.put(content)).sha256;
    return { version, omitted: content ? undefined : (omitted ?? 'large') };
  }

  #textAfter({ sha256 = '' }: FileFacts): Text {
    return this.#found.get(sha256) ?? this.#kept(sha256) ?? {};
  }

  #textBefore({ sha256 = '' }: FileFacts, earlier: Room): Text {
    const kept = this.#kept(sha256);
    if (kept && !earlier.take(kept.byteSize)) return { byteSize: kept.byteSize, omitted: 'room' };
    if (kept) return kept;
    return this.#pack.isBinary(sha256) ? { omitted: 'binary' } : {};
  }

  /** A text that prepare left, perhaps under another name. */
  #kept(sha256: string): { content: Buffer; byteSize: number } | undefined {
    const content = this.#pack.get(sha256);
    return content && { content, byteSize: content.byteLength };
  }
}

interface Text {
  content?: Buffer;
  byteSize?: number;
  omitted?: FileChange['omitted'];
}

type Room = ReturnType<typeof room>;

/** Half of what a trial may keep of texts. */
function room() {
  let bytes = workspaceFiles.bytes.texts / 2;
  let files = workspaceFiles.count.texts / 2;
  return {
    take(byteSize: number): boolean {
      if (files === 0 || byteSize > bytes) return false;
      bytes -= byteSize;
      files -= 1;
      return true;
    },
  };
}

/** As git decides it: no NUL near the beginning. */
function isText(content: Buffer): boolean {
  return !content.subarray(0, 8_000).includes(0);
}

function sha256Of(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

/**
 * Texts of prepared workspaces, by the sha256 of their content, so that a diff can show what a changed file
 * was before. They are in one file without a name, which the system removes when this process ends. What the
 * disk has no room for is not kept.
 */
export class TextPack implements Disposable {
  readonly #places = new Map<string, { at: number; length: number }>();
  readonly #binaries = new Set<string>();
  #file: number | undefined;
  #end = 0;
  /** Bytes that it may have: other programs use the same disk. */
  #room = workspaceFiles.bytes.textsBefore;
  #isFull = false;

  /** Remembers that a content is not text. */
  addBinary(sha256: string): void {
    this.#binaries.add(sha256);
  }

  isBinary(sha256: string): boolean {
    return this.#binaries.has(sha256);
  }

  put(sha256: string, content: Buffer): void {
    const length = content.byteLength;
    if (this.#isFull || this.#places.has(sha256)) return;
    try {
      this.#file ??= this.#open();
      if (this.#end + length > this.#room) return;
      writeSync(this.#file, content, 0, length, this.#end);
    } catch {
      this.#isFull = true;
      if (this.#file !== undefined) ftruncateSync(this.#file, this.#end);
      return;
    }
    this.#places.set(sha256, { at: this.#end, length });
    this.#end += length;
  }

  get(sha256: string): Buffer | undefined {
    const place = this.#places.get(sha256);
    if (place === undefined || this.#file === undefined) return undefined;
    const content = Buffer.alloc(place.length);
    return readSync(this.#file, content, 0, place.length, place.at) === place.length ? content : undefined;
  }

  #open(): number {
    const { bavail, bsize } = statfsSync(tmpdir());
    this.#room = Math.min(this.#room, (bavail * bsize) / 4);
    return unnamedFile();
  }

  [Symbol.dispose](): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
    this.#places.clear();
  }
}

function unnamedFile(): number {
  const path = join(tmpdir(), `offsite-texts-${randomUUID()}`);
  const file = openSync(path, 'wx+', 0o600);
  unlinkSync(path);
  return file;
}
