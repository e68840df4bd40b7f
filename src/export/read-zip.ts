import { crc32, inflateRawSync, zstdDecompressSync } from 'node:zlib';
import type { Entry, ZipFile } from 'yauzl';
import { messageOf } from '../base/offsite-error.ts';
import { foreignLogs } from '../bounds/anyone.ts';
import { unreadableLog } from './foreign-log.ts';

/** A zip whose files are read one by one, in any order. */
export interface OpenZip extends Disposable {
  /** The names of its files in their order. Of files with the same name, the last one counts. */
  names: readonly string[];
  /** The content of a file. Throws `LOG_UNREADABLE`, also for more bytes than {@link foreignLogs} allows. */
  read(name: string): Promise<Buffer>;
}

/** Opens a zip that somebody else wrote. Nothing of it is written anywhere. Throws `LOG_UNREADABLE`. */
export async function openZip(file: string): Promise<OpenZip> {
  // The bundle has only the default export of a CommonJS package.
  const { open } = (await import('yauzl')).default;
  const zip = await new Promise<ZipFile>((resolve, reject) => {
    const options = { lazyEntries: true, autoClose: false, validateEntrySizes: false };
    open(file, options, (error, opened) =>
      error ? reject(unreadableLog(file, error.message, error)) : resolve(opened),
    );
  });
  try {
    if (zip.fileSize > foreignLogs.bytes.file) throw unreadableLog(file, 'it is too large');
    if (zip.entryCount > foreignLogs.count.files) throw unreadableLog(file, 'it has too many files');
    const entries = await entriesOf(zip, file);
    let unpacked = 0;
    return {
      names: [...entries.keys()],
      async read(name) {
        const entry = entries.get(name);
        if (!entry) throw unreadableLog(file, `it has no file ${name}`);
        unpacked += entry.uncompressedSize;
        if (unpacked > foreignLogs.bytes.unpacked)
          throw unreadableLog(file, 'it is too large when it is decompressed');
        return contentOf(zip, entry, `${file}: ${name}`);
      },
      [Symbol.dispose]: () => zip.close(),
    };
  } catch (error) {
    zip.close();
    throw error;
  }
}

function entriesOf(zip: ZipFile, file: string): Promise<Map<string, Entry>> {
  const entries = new Map<string, Entry>();
  return new Promise((resolve, reject) => {
    zip.on('error', (error: Error) => reject(unreadableLog(file, error.message, error)));
    zip.on('end', () => resolve(entries));
    zip.on('entry', (entry: Entry) => {
      entries.delete(entry.fileName);
      entries.set(entry.fileName, entry);
      zip.readEntry();
    });
    zip.readEntry();
  });
}

/** Of the methods of compression, those that inspect_ai writes: none, deflate, and Zstandard since 2026. */
const methods = { stored: 0, deflate: 8, zstd: 93 };

async function contentOf(zip: ZipFile, entry: Entry, place: string): Promise<Buffer> {
  const { compressionMethod: method, compressedSize, uncompressedSize } = entry;
  const most = foreignLogs.bytes.document;
  if (compressedSize > most || uncompressedSize > most) throw unreadableLog(place, 'it is too large');
  if (entry.isEncrypted()) throw unreadableLog(place, 'it is encrypted');
  try {
    const packed = await bytesOf(zip, entry);
    // The size that the zip claims is the most that is made of it, and must be right.
    const limit = { maxOutputLength: Math.max(1, uncompressedSize) };
    const content =
      method === methods.stored
        ? packed
        : method === methods.deflate
          ? inflateRawSync(packed, limit)
          : method === methods.zstd
            ? zstdDecompressSync(packed, limit)
            : undefined;
    if (!content)
      throw new Error(`it is compressed by method ${method}, and Offsite reads deflate and Zstandard`);
    if (content.length !== uncompressedSize || crc32(content) !== entry.crc32)
      throw new Error('its content is not what the zip says of it');
    return content;
  } catch (error) {
    throw unreadableLog(place, messageOf(error), error);
  }
}

async function bytesOf(zip: ZipFile, entry: Entry): Promise<Buffer> {
  const stream = await new Promise<AsyncIterable<Buffer>>((resolve, reject) => {
    const options = { decodeFileData: false };
    zip.openReadStream(entry, options, (error, opened) => (error ? reject(error) : resolve(opened)));
  });
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts);
}
