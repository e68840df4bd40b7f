import { archives } from '../../bounds/sandbox.ts';

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

  /** Whether at most so many bytes follow, all of them zero. */
  async endsWithZeros(most: number): Promise<boolean> {
    for (let left = most; ; ) {
      left -= this.#current.length;
      if (left < 0 || this.#current.some((byte) => byte !== 0)) return false;
      const { value, done } = await this.#chunks.next();
      if (done) return true;
      this.#current = value;
    }
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
 *
 * @param source a reader stands behind the end marker afterwards
 */
export async function* tarEntries(source: AsyncIterable<Buffer> | ByteReader): AsyncGenerator<TarEntry> {
  const bytes = source instanceof ByteReader ? source : new ByteReader(source);
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

/**
 * The header of a tar entry, a block of 512 bytes, in POSIX `ustar` format or GNU's variant. Names are bytes.
 */
export interface TarHeader {
  name: Buffer;
  linkName: Buffer;
  /** The type flag as a character: `0` a file, `5` a folder, `x` records about the next entry, ... */
  flag: string;
  mode: number;
  uid: number;
  gid: number;
  /** Bytes of content that follow, without padding. */
  size: number;
  /** Epoch milliseconds. */
  modifiedAt: number;
  /**
   * The length of a sparse file in GNU's format 1.0. What follows is then a map of its data, and the data
   * without the holes.
   */
  sparseSize?: number | undefined;
}

export const blockBytes = 512;

/**
 * Reads a header; undefined for the empty block that ends an archive. Throws if the block is not a header.
 */
export function readTarHeader(block: Buffer): TarHeader | undefined {
  const sum = checksum(block);
  // The checksum counts its own field as eight spaces, so this is the sum of an empty block.
  if (sum === 8 * 0x20) return undefined;
  if (sum !== numberOf(block.subarray(148, 156))) throw new Error('the archive is damaged: a wrong checksum');
  const name = textOf(block, 0, 100);
  const prefix = block.toString('latin1', 257, 263) === 'ustar\0' ? textOf(block, 345, 155) : Buffer.alloc(0);
  return {
    name: prefix.length > 0 ? Buffer.concat([prefix, Buffer.from('/'), name]) : name,
    linkName: textOf(block, 157, 100),
    // Archives from before POSIX have no flag for files.
    flag: block[156] === 0 ? '0' : String.fromCharCode(block[156] ?? 0),
    mode: numberOf(block.subarray(100, 108)) & 0o7777,
    uid: numberOf(block.subarray(108, 116)),
    gid: numberOf(block.subarray(116, 124)),
    size: numberOf(block.subarray(124, 136)),
    modifiedAt: numberOf(block.subarray(136, 148)) * 1000,
  };
}

function checksum(block: Buffer): number {
  let sum = 8 * 0x20;
  for (let at = 0; at < 148; at++) sum += block[at] ?? 0;
  for (let at = 156; at < blockBytes; at++) sum += block[at] ?? 0;
  return sum;
}

/** Bytes up to a NUL. Copied: the block is a view of a network chunk. */
function textOf(block: Buffer, start: number, length: number): Buffer {
  const field = block.subarray(start, start + length);
  const end = field.indexOf(0);
  return Buffer.from(end === -1 ? field : field.subarray(0, end));
}

/** Octal digits; for larger numbers, big-endian bytes after 0x80. */
function numberOf(field: Buffer): number {
  if (field[0] === 0x80) {
    return field.subarray(1).reduce((number, byte) => number * 256 + byte, 0);
  }
  const digits = /^[\0 ]*([0-7]*)/.exec(field.toString('latin1'))?.[1] ?? '';
  return digits === '' ? 0 : Number.parseInt(digits, 8);
}
