import { Readable } from 'node:stream';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { RunningContainer } from '../container/running-container.ts';
import type { NewEntries, NewEntry } from './entries.ts';
import { blockBytes, paddingOf, type TarHeader, tarEntries } from './tar-entries.ts';

/** An entry of an archive that Offsite makes. Unless it says otherwise, it is of root, and from now. */
export interface WrittenEntry extends Partial<Pick<TarHeader, 'mode' | 'uid' | 'gid' | 'modifiedAt'>> {
  name: string;
  /** Set for a folder. */
  isFolder?: boolean;
  /** Set for a symbolic link. */
  linkTarget?: string | undefined;
  /** Of a file. */
  content?: string | Buffer | { size: number; bytes: AsyncIterable<Buffer> };
}

/** An archive of entries, each made when the reader takes it. It fails as what they come from fails. */
export function tarArchive(entries: Iterable<WrittenEntry> | AsyncIterable<WrittenEntry>): Readable {
  return Readable.from(archived(entries), { objectMode: false });
}

async function* archived(entries: Iterable<WrittenEntry> | AsyncIterable<WrittenEntry>) {
  for await (const { name, isFolder = false, linkTarget, content = '', ...given } of entries) {
    const whole = typeof content === 'string' ? Buffer.from(content) : content;
    const size = Buffer.isBuffer(whole) ? whole.length : whole.size;
    yield tarHeader({
      mode: isFolder ? 0o755 : 0o644,
      uid: 0,
      gid: 0,
      modifiedAt: Date.now(),
      size,
      ...given,
      flag: isFolder ? '5' : linkTarget === undefined ? '0' : '2',
      name: Buffer.from(name),
      linkName: Buffer.from(linkTarget ?? ''),
    });
    if (Buffer.isBuffer(whole)) {
      if (size > 0) yield padded(whole);
      continue;
    }
    let left = size;
    for await (const piece of whole.bytes) {
      left -= piece.length;
      yield piece;
    }
    if (left !== 0) throw new Error(`${name} changed while it was read`);
    if (paddingOf(size) > 0) yield Buffer.alloc(paddingOf(size));
  }
  yield archiveEnd;
}

/**
 * The same archive with other headers; an entry without one is left out. Attributes that a `TarHeader` does
 * not have are left out too, such as capabilities. If the given archive fails, so does the result; when the
 * result closes, the given one is destroyed.
 */
export function rewritten(
  source: Readable,
  change: (header: TarHeader) => TarHeader | undefined | Promise<TarHeader | undefined>,
): Readable {
  const archive = Readable.from(rewrittenEntries(source, change), { objectMode: false });
  // Whoever opened the given archive may destroy it, even before it is read.
  source.once('error', (error) => archive.destroy(error));
  archive.once('close', () => source.destroy());
  return archive;
}

async function* rewrittenEntries(source: Readable, change: Parameters<typeof rewritten>[1]) {
  for await (const { header, content } of tarEntries(source)) {
    const changed = await change(header);
    if (!changed) continue;
    const size = bytesAfter(header);
    yield tarHeader({ ...changed, size });
    if (size === 0) continue;
    yield* content();
    if (paddingOf(size) > 0) yield Buffer.alloc(paddingOf(size));
  }
  yield archiveEnd;
}

/** Bytes of content that follow a header: only files have some, whatever other headers say. */
export function bytesAfter({ flag, size }: TarHeader): number {
  return flag === '0' || flag === '7' ? size : 0;
}

/**
 * An entry's header as whole blocks. Records with its names, size and ids come before it, so that names of
 * any bytes and numbers of any length are kept. All other attributes are left out, such as capabilities.
 */
export function tarHeader(header: TarHeader): Buffer {
  const { name, linkName, size, uid, gid, sparseSize } = header;
  const records = Buffer.concat([
    record('path', name),
    ...(linkName.length > 0 ? [record('linkpath', linkName)] : []),
    ...(sparseSize === undefined ? [] : [record('GNU.sparse.name', name)]),
    ...Object.entries({
      size,
      uid,
      gid,
      ...(sparseSize !== undefined && sparseRecords(sparseSize)),
    }).map(([key, value]) => record(key, Buffer.from(String(value)))),
  ]);
  return Buffer.concat([
    block({ ...header, flag: 'x', size: records.length }),
    padded(records),
    block(header),
  ]);
}

function sparseRecords(size: number): Record<string, number> {
  return { 'GNU.sparse.major': 1, 'GNU.sparse.minor': 0, 'GNU.sparse.realsize': size };
}

/** The two empty blocks at the end of an archive. */
export const archiveEnd: Buffer = Buffer.alloc(2 * blockBytes);

/** `LENGTH KEY=VALUE\n`. LENGTH counts the whole record in bytes, its own digits too. */
function record(key: string, value: Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), value, Buffer.from('\n')]);
  let length = rest.length;
  while (length !== rest.length + String(length).length) length = rest.length + String(length).length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

function padded(content: Buffer): Buffer {
  return Buffer.concat([content, Buffer.alloc(paddingOf(content.length))]);
}

function block({ flag, mode, size, uid, gid, modifiedAt }: TarHeader): Buffer {
  const made = Buffer.alloc(blockBytes);
  made.write('entry', 0);
  writeNumber(made, 100, 8, mode);
  writeNumber(made, 108, 8, uid);
  writeNumber(made, 116, 8, gid);
  writeNumber(made, 124, 12, size);
  writeNumber(made, 136, 12, Math.floor(modifiedAt / 1000));
  made.write(flag, 156);
  made.write('ustar\x0000', 257, 'latin1');
  made.fill(' ', 148, 156);
  const sum = made.reduce((total, byte) => total + byte, 0);
  made.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return made;
}

/**
 * Octal digits. A number that is too long is written as 0: the records before the header have its true value,
 * except for a time.
 */
function writeNumber(into: Buffer, at: number, bytes: number, number: number): void {
  const digits = Math.max(0, number)
    .toString(8)
    .padStart(bytes - 1, '0');
  into.write(digits.length < bytes ? digits : '0'.repeat(bytes - 1), at);
}

/**
 * Writes entries below the absolute folder `at` (which must exist) in one round trip. Throws an input error
 * before anything is sent if a path contains `..` or half a character (a lone surrogate).
 */
export async function putEntries(
  { port, id }: Pick<RunningContainer, 'port' | 'id'>,
  entries: NewEntries,
  at: string,
  signal?: AbortSignal,
): Promise<void> {
  const isStreamed = Symbol.asyncIterator in entries;
  const stream = tarArchive(isStreamed ? writtenEach(entries) : [...entries].map(written));
  // The engine never answers a request whose body breaks off.
  const broken = new Promise<never>((_, reject) => stream.on('error', reject));
  try {
    await Promise.race([port.containers.putArchive(id, at, stream, signal), broken]);
  } finally {
    stream.destroy();
  }
}

async function* writtenEach(entries: AsyncIterable<NewEntry>): AsyncGenerator<WrittenEntry> {
  for await (const entry of entries) yield written(entry);
}

function written({ path, ...entry }: NewEntry): WrittenEntry {
  const name = relativeName(path);
  if (!('folder' in entry)) return { name, ...entry };
  const { folder, ...facts } = entry;
  return { name, isFolder: folder, ...facts };
}

function relativeName(path: string): string {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.length === 0 || parts.includes('..') || path.includes('\0') || !path.isWellFormed()) {
    throw new OffsiteError(`Not a path for a file in a container: ${JSON.stringify(path)}`, {
      code: 'ENGINE_UNSAFE_PATH',
      kind: 'input',
      hint: 'Use a path of whole characters, without "..".',
    });
  }
  return parts.join('/');
}
