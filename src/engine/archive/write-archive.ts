import { Readable } from 'node:stream';
import { inputError } from '../../base/offsite-error.ts';
import type { RunningContainer } from '../container/running-container.ts';
import type { EnginePort } from '../port/engine-port.ts';
import type { NewEntries, NewEntry } from './entries.ts';
import { blockBytes, paddingOf, type TarHeader, tarEntries } from './tar-entries.ts';

/** An archive of entries, each made when the reader takes it. It fails as what they come from fails. */
export function tarArchive(entries: NewEntries): Readable {
  return Readable.from(archived(entries), { objectMode: false });
}

async function* archived(entries: NewEntries) {
  for await (const { path, folder = false, linkTarget, content = '', ...given } of entries) {
    const whole = typeof content === 'string' ? Buffer.from(content) : content;
    const size = Buffer.isBuffer(whole) ? whole.length : whole.size;
    yield tarHeader({
      mode: folder ? 0o755 : 0o644,
      uid: 0,
      gid: 0,
      modifiedAt: Date.now(),
      ...given,
      size,
      flag: folder ? '5' : linkTarget === undefined ? '0' : '2',
      name: Buffer.from(path),
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
    if (left !== 0) throw new Error(`${path} changed while it was read`);
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
  const sparse = {
    'GNU.sparse.name': name,
    'GNU.sparse.major': 1,
    'GNU.sparse.minor': 0,
    'GNU.sparse.realsize': sparseSize,
  };
  const links = linkName.length > 0 && { linkpath: linkName };
  const facts = { path: name, ...links, ...(sparseSize !== undefined && sparse), size, uid, gid };
  const records = Buffer.concat(Object.entries(facts).map(([key, value]) => record(key, value)));
  return Buffer.concat([
    block({ ...header, flag: 'x', size: records.length }),
    padded(records),
    block(header),
  ]);
}

/** The two empty blocks at the end of an archive. */
export const archiveEnd: Buffer = Buffer.alloc(2 * blockBytes);

/** `LENGTH KEY=VALUE\n`. LENGTH counts the whole record in bytes, its own digits too. */
function record(key: string, value: Buffer | number | undefined): Buffer {
  const bytes = Buffer.isBuffer(value) ? value : Buffer.from(String(value));
  const rest = Buffer.concat([Buffer.from(` ${key}=`), bytes, Buffer.from('\n')]);
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
  const stream = tarArchive(isStreamed ? namedEach(entries) : [...entries].map(named));
  try {
    await sendArchive(port, { id, folder: at }, stream, signal);
  } finally {
    stream.destroy();
  }
}

/** Has the engine unpack an archive below a folder of a container. Throws what reading the archive throws. */
export async function sendArchive(
  port: EnginePort,
  { id, folder }: { id: string; folder: string },
  archive: Readable,
  signal: AbortSignal | undefined,
): Promise<void> {
  const stop = new AbortController();
  // The engine never answers a request whose body breaks off.
  const broken = new Promise<never>((_, reject) => {
    archive.on('error', (error) => {
      reject(error);
      stop.abort(error);
    });
  });
  const given = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
  await Promise.race([port.containers.putArchive(id, folder, archive, given), broken]);
}

async function* namedEach(entries: AsyncIterable<NewEntry>): AsyncGenerator<NewEntry> {
  for await (const entry of entries) yield named(entry);
}

/** The entry with a name that is relative to a folder. */
function named(entry: NewEntry): NewEntry {
  return { ...entry, path: relativeName(entry.path) };
}

function relativeName(path: string): string {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.length === 0 || parts.includes('..') || path.includes('\0') || !path.isWellFormed()) {
    throw inputError('ENGINE_UNSAFE_PATH', `Not a path for a file in a container: ${JSON.stringify(path)}`, {
      hint: 'Use a path of whole characters, without "..".',
    });
  }
  return parts.join('/');
}
