import { Readable } from 'node:stream';
import { infrastructureError } from '../../base/offsite-error.ts';
import { PathRoom } from '../../base/path-room.ts';
import type { RunningContainer } from '../container/running-container.ts';
import { connectionFailure, isEngineFailure } from '../port/failure.ts';
import { type ArchivedEntry, type ArchivedType, nameText } from './entries.ts';
import {
  type MaybeSparse,
  sizeLimit,
  tarInstead,
  transferDeadline,
  watchHoles,
  withHoles,
} from './raw-archive.ts';
import { type TarEntry, type TarHeader, tarEntries } from './tar-entries.ts';
import { archiveEnd } from './write-archive.ts';

/** By type flag. `7` is a contiguous file; systems without these treat it as a plain file. */
const typesByName: Readonly<Record<string, ArchivedType>> = {
  '0': 'file',
  '7': 'file',
  '5': 'folder',
  '2': 'symlink',
  '1': 'hardlink',
  '3': 'device',
  '4': 'device',
  '6': 'fifo',
};

/**
 * Reads a file, or a folder with everything below it, entry by entry while it arrives. Stopping early
 * (`break`) ends the transfer; the engine locks the container during the transfer, so do not pause it. Throws
 * `ENGINE_NOT_FOUND` if the path does not exist, and `ENGINE_TOO_LARGE` before the file that makes all files
 * together larger than `maxBytes`. A path that is itself a symlink gives only that link. Holes of large files
 * in a folder do not count, and are read only with their content, where a program can find them.
 *
 * @param copy keeps the archive with the owners of its files
 */
export async function* readArchive(
  container: MaybeSparse,
  path: string,
  signal?: AbortSignal,
  maxBytes = Number.POSITIVE_INFINITY,
  copy?: ArchiveCopy,
): AsyncGenerator<ArchivedEntry> {
  const request = { path, signal, maxBytes };
  const passed = new Set<string>();
  const room = new PathRoom();
  let canBeginAgain = true;
  let failure: unknown;
  try {
    const beforeFile = await watchHoles(container, signal);
    const archive = await container.port.containers.getArchive(container.id, path, signal, {
      owners: copy !== undefined,
    });
    for await (const entry of entriesOf(container, archive, { ...request, copy }, beforeFile)) {
      canBeginAgain &&= room.take(entry.path);
      if (canBeginAgain) passed.add(entry.path);
      yield entry;
    }
    copy?.end();
    return;
  } catch (thrown) {
    if (!canBeginAgain || passed.size === 0) throw thrown;
    failure = thrown;
  }
  const tar = await tarInstead(failure, container);
  await using source = await tar.read(path, signal);
  for await (const entry of entriesOf(container, source.archive, request))
    if (!passed.has(entry.path)) yield entry;
  await source.complete();
}

interface ReadRequest {
  path: string;
  signal: AbortSignal | undefined;
  maxBytes: number;
  copy?: ArchiveCopy | undefined;
}

async function* entriesOf(
  { port }: MaybeSparse,
  source: Readable,
  { path, signal, maxBytes, copy }: ReadRequest,
  beforeFile?: (size: number) => Promise<void>,
): AsyncGenerator<ArchivedEntry> {
  const doing = `reading ${path} from a container`;
  using _deadline = transferDeadline(port, source, signal);
  const broken = (thrown: unknown) => (signal?.aborted ? signal.reason : connectionFailure(doing, thrown));
  const declare = sizeLimit(maxBytes, path);
  try {
    let isFirst = true;
    for await (const entry of tarEntries(copy?.passing(source) ?? source)) {
      const { size, sparseSize = size } = entry.header;
      if (!isFirst) await beforeFile?.(size);
      isFirst = false;
      declare(size);
      const beginContent = () => declare(Math.max(0, sparseSize - size));
      yield { ...described(entry.header), content: () => contentOf(entry, beginContent, broken) };
    }
  } catch (thrown) {
    throw broken(thrown);
  } finally {
    if (beforeFile) source.destroy();
  }
}

async function* contentOf(
  entry: TarEntry,
  begin: () => void,
  broken: (thrown: unknown) => unknown,
): AsyncGenerator<Buffer> {
  begin();
  try {
    const { sparseSize } = entry.header;
    yield* sparseSize === undefined ? entry.content() : withHoles(entry.content(), sparseSize);
  } catch (thrown) {
    throw broken(thrown);
  }
}

/** Throws for a type that no engine sends. */
export function typeOf({ flag }: TarHeader): ArchivedType {
  const type = typesByName[flag];
  if (type === undefined) throw new Error(`the archive has an entry of the unknown type "${flag}"`);
  return type;
}

function described(header: TarHeader): Omit<ArchivedEntry, 'content'> {
  const { name, linkName, size, sparseSize = size, mode, modifiedAt } = header;
  const type = typeOf(header);
  const isSymlink = type === 'symlink';
  return {
    path: innerPath(name).text,
    type,
    size: type === 'file' ? sparseSize : 0,
    mode,
    modifiedAt,
    // A hard link names another entry of the archive, so its target is shortened like one.
    linkTarget: isSymlink ? nameText(linkName) : type === 'hardlink' ? innerPath(linkName).text : undefined,
  };
}

/** A name in an archive without its first part, which is the last part of the requested path. */
export function innerPath(name: Buffer): { text: string; bytes: Buffer } {
  const parts = name
    .toString('latin1')
    .split('/')
    .filter((part) => part !== '' && part !== '.');
  if (parts.includes('..') || name.includes(0)) {
    const message = `The engine sent a file name that leads out of its folder: ${JSON.stringify(nameText(name))}`;
    throw infrastructureError('ENGINE_UNSAFE_PATH', message);
  }
  const bytes = Buffer.from(parts.slice(1).join('/'), 'latin1');
  return { bytes, text: nameText(bytes) };
}

type PathKind = 'folder' | 'nothing' | 'other';

/** What lies at an absolute path. */
export async function kindOfPath(
  { port, id }: RunningContainer,
  path: string,
  signal?: AbortSignal,
): Promise<PathKind> {
  try {
    return (await port.containers.isFolder(id, path, signal)) ? 'folder' : 'other';
  } catch (error) {
    if (isEngineFailure(error, 'not-found')) return 'nothing';
    throw error;
  }
}

/**
 * The bytes of an engine's archive, kept while it is read, so that whatever needs the same archive again need
 * not ask the engine, whose answer takes tens of milliseconds even for an empty folder. An archive of more
 * than `maxBytes` is not kept.
 */
export class ArchiveCopy {
  readonly #maxBytes: number;
  #chunks: Buffer[] | undefined = [];
  #bytes = 0;
  #isWhole = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  async *passing(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      this.#bytes += chunk.length;
      if (this.#bytes > this.#maxBytes) this.#chunks = undefined;
      this.#chunks?.push(chunk);
      yield chunk;
    }
  }

  /** Says that the archive was read to its end marker. */
  end(): void {
    this.#isWhole = true;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Undefined if it is not whole. */
  read(): Readable | undefined {
    if (!this.#isWhole || this.#chunks === undefined) return undefined;
    // A reader stops at the marker, which may be cut here.
    return Readable.from([...this.#chunks, archiveEnd], { objectMode: false });
  }
}
