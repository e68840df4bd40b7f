import { archives } from '../../bounds/sandbox.ts';
import { blockBytes, readTarHeader, type TarHeader } from './tar-header.ts';

/** Reads pieces of a requested size from a source of chunks. One reader at a time. */
export class ByteReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #current: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#chunks = source[Symbol.asyncIterator]();
  }

  /** The next `count` bytes. Throws if the source ends earlier. */
  async exactly(count: number): Promise<Buffer> {
    if (this.#current.length >= count) return this.#take(count);
    const pieces: Buffer[] = [];
    for (let missing = count; missing > 0; ) {
      const piece = await this.some(missing);
      pieces.push(piece);
      missing -= piece.length;
    }
    return Buffer.concat(pieces);
  }

  /**
   * At least one and at most `limit` of the next bytes, as they arrived: a view, not a copy. Throws if the
   * source has ended.
   */
  async some(limit: number): Promise<Buffer> {
    while (this.#current.length === 0) {
      const { value, done } = await this.#chunks.next();
      if (done) throw new Error('the archive ended in the middle');
      this.#current = value;
    }
    return this.#take(Math.min(limit, this.#current.length));
  }

  async skip(count: number): Promise<void> {
    for (let left = count; left > 0; ) left -= (await this.some(left)).length;
  }

  #take(count: number): Buffer {
    const taken = this.#current.subarray(0, count);
    this.#current = this.#current.subarray(count);
    return taken;
  }
}

export interface TarEntry {
  header: TarHeader;
  /** The rest of its content that was not read yet. */
  content(): AsyncGenerator<Buffer>;
}

/** Fields that extra headers set for the entry after them; they replace those of its own header. */
type Amendments = Partial<Pick<TarHeader, 'name' | 'linkName' | 'size' | 'uid' | 'gid' | 'sparseSize'>>;

/**
 * Reads a tar archive entry by entry, as it arrives. Unread content is skipped when the next entry is
 * requested. Throws if the archive is damaged, or ends before its end marker. Names stay bytes here:
 * libraries decode them as UTF-8, which maps different invalid names to the same text.
 */
export async function* tarEntries(source: AsyncIterable<Buffer>): AsyncGenerator<TarEntry> {
  const bytes = new ByteReader(source);
  let amendments: Amendments = {};
  for (;;) {
    const plain = readTarHeader(await bytes.exactly(blockBytes));
    if (plain === undefined) return;
    const amended = await readAmendments(plain, bytes);
    if (amended !== undefined) {
      amendments = { ...amendments, ...amended };
      continue;
    }
    const header = { ...plain, ...amendments };
    amendments = {};
    let left = header.flag === '5' ? 0 : header.size;
    const padding = paddingOf(left);
    async function* content() {
      while (left > 0) {
        const piece = await bytes.some(left);
        left -= piece.length;
        yield piece;
      }
    }
    yield { header, content };
    await bytes.skip(left + padding);
    // A reader that still holds this entry must not get bytes of the next one.
    left = 0;
  }
}

/** Undefined if the header belongs to an entry itself. */
async function readAmendments(header: TarHeader, bytes: ByteReader): Promise<Amendments | undefined> {
  if (!['x', 'g', 'L', 'K'].includes(header.flag)) return undefined;
  if (header.size > archives.bytes.nameRecords) throw new Error('the archive is damaged: a name without end');
  const text = Buffer.from(await bytes.exactly(header.size));
  await bytes.skip(paddingOf(header.size));
  switch (header.flag) {
    case 'L':
      return { name: upToNul(text) };
    case 'K':
      return { linkName: upToNul(text) };
    case 'x':
      return readRecords(text);
    default:
      // Records for the whole archive, such as a comment, hold no names.
      return {};
  }
}

/** Parses POSIX records, `LENGTH KEY=VALUE\n`. LENGTH counts the whole record in bytes. */
export function readRecords(text: Buffer): Amendments {
  const found: Amendments = {};
  let sparseName: Buffer | undefined;
  for (let at = 0; at < text.length; ) {
    const space = text.indexOf(0x20, at);
    const length = Number(text.toString('latin1', at, space));
    const equals = text.indexOf(0x3d, space);
    const end = at + length - 1;
    if (space === -1 || equals === -1 || !(equals < end) || text[end] !== 0x0a) {
      throw new Error('the archive is damaged: an unreadable record');
    }
    const value = text.subarray(equals + 1, end);
    const key = text.toString('latin1', space + 1, equals);
    if (key === 'path') found.name = value;
    if (key === 'linkpath') found.linkName = value;
    if (key === 'size' || key === 'uid' || key === 'gid') found[key] = Number(value.toString('latin1'));
    if (key === 'GNU.sparse.realsize') found.sparseSize = Number(value.toString('latin1'));
    if (key === 'GNU.sparse.name') sparseName = value;
    at = end + 1;
  }
  // Older programs would see a sparse file under another name.
  return sparseName === undefined ? found : { ...found, name: sparseName };
}

function upToNul(text: Buffer): Buffer {
  const end = text.indexOf(0);
  return end === -1 ? text : text.subarray(0, end);
}

/** Bytes of padding that fill the content up to whole blocks. */
export function paddingOf(size: number): number {
  return (blockBytes - (size % blockBytes)) % blockBytes;
}
