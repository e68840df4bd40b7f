import { Readable } from 'node:stream';
import { paddingOf, tarEntries } from '../archive/tar-entries.ts';
import type { TarHeader } from '../archive/tar-header.ts';
import { archiveEnd, tarHeader } from '../archive/write-archive.ts';

/**
 * The same archive with other headers. Attributes that a `TarHeader` does not have are left out, such as
 * capabilities.
 */
export async function* rewritten(
  source: AsyncIterable<Buffer>,
  change: (header: TarHeader) => TarHeader,
): AsyncGenerator<Buffer> {
  for await (const { header, content } of tarEntries(source)) {
    const hasContent = header.flag === '0' || header.flag === '7';
    yield tarHeader({ ...change(header), size: hasContent ? header.size : 0 });
    if (!hasContent || header.size === 0) continue;
    yield* content();
    yield Buffer.alloc(paddingOf(header.size));
  }
  yield archiveEnd;
}

/** Turns what a generator makes of `source` into a stream. When that stream closes, `source` is destroyed. */
export function streamFrom(source: Readable, made: AsyncIterable<Buffer>): Readable {
  const archive = Readable.from(made, { objectMode: false });
  archive.on('close', () => source.destroy());
  return archive;
}

const slash = Buffer.from('/');
const startsAtRoot = (bytes: Buffer) => bytes[0] === slash[0];

/**
 * The same archive with the folder's name before every path, if Podman left the name out. Podman does that
 * for a volume in a container that does not run. There the folder itself, which comes first, is called `/`.
 */
export function withFolderName(source: Readable, folder: string): Readable {
  const name = Buffer.from(folder);
  const under = (path: Buffer) => (startsAtRoot(path) ? Buffer.concat([name, path]) : path);
  const change = (header: TarHeader): TarHeader => {
    const linkName = header.flag === '1' ? under(header.linkName) : header.linkName;
    return { ...header, name: under(header.name), linkName };
  };
  async function* named(): AsyncGenerator<Buffer> {
    const pieces: AsyncIterator<Buffer> = source[Symbol.asyncIterator]();
    const { value: first, done } = await pieces.next();
    if (done) return;
    async function* all() {
      yield first;
      yield* { [Symbol.asyncIterator]: () => pieces };
    }
    yield* startsAtRoot(first) ? rewritten(all(), change) : all();
  }
  return streamFrom(source, named());
}
