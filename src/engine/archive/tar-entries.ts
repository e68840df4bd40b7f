import { archives } from '../../bounds/sandbox.ts';
import { ByteReader } from './byte-reader.ts';
import { BLOCK_BYTES, readTarHeader, type TarHeader } from './tar-header.ts';

export interface TarEntry {
  header: TarHeader;
  /** What was not read yet of its content. */
  content(): AsyncGenerator<Buffer>;
}

/** What extra headers say about the entry after them, in place of its own header's fields. */
type Amendments = Partial<Pick<TarHeader, 'name' | 'linkName' | 'size'>>;

/**
 * Reads a tar archive entry by entry, as it comes. Content that nobody read is skipped when the next entry is
 * asked for. Throws where the archive is damaged, or ends before it says so. Libraries decode names as UTF-8,
 * which makes one name of many that are not; here they stay bytes.
 */
export async function* tarEntries(source: AsyncIterable<Buffer>): AsyncGenerator<TarEntry> {
  const bytes = new ByteReader(source);
  let amendments: Amendments = {};
  for (;;) {
    const plain = readTarHeader(await bytes.exactly(BLOCK_BYTES));
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
    // Whoever still reads the entry gets nothing of the next one.
    left = 0;
  }
}

/** Undefined where the header is that of an entry itself. */
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
      // Said of the whole archive, such as a comment; nothing of it is a name.
      return {};
  }
}

/** POSIX's records, `LENGTH KEY=VALUE\n`, where LENGTH counts the whole record in bytes. */
export function readRecords(text: Buffer): Amendments {
  const found: Amendments = {};
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
    if (key === 'size') found.size = Number(value.toString('latin1'));
    at = end + 1;
  }
  return found;
}

function upToNul(text: Buffer): Buffer {
  const end = text.indexOf(0);
  return end === -1 ? text : text.subarray(0, end);
}

/** Content is filled up to whole blocks. */
export function paddingOf(size: number): number {
  return (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES;
}
