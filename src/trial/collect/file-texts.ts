import { createHash, randomUUID } from 'node:crypto';
import { closeSync, ftruncateSync, openSync, readSync, statfsSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { workspaceFiles } from '../../bounds/sandbox.ts';
import type { ArchivedEntry } from '../../engine/archive/entries.ts';
import type { FileFacts, Manifest } from '../../engine/archive/stored-file.ts';
import type { BlobStore } from '../../ledger/blobs.ts';
import type { FileChange, FileVersion } from '../../record/files.ts';

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
