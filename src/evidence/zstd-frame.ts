import { type FileHandle, open } from 'node:fs/promises';
import { constants, zstdCompressSync } from 'node:zlib';

/**
 * Whether a file has nothing after the frame of zstd that it begins with (RFC 8878, 3.1.1), as its headers
 * say. Node expands that frame and says nothing of what follows. The content must be known to be whole.
 */
export async function isOneFrame(file: string): Promise<boolean> {
  await using handle = await open(file);
  const end = await frameBytes(handle);
  const rest = Buffer.alloc(emptyFrame.length + 1);
  const { bytesRead } = await handle.read(rest, 0, rest.length, end);
  return bytesRead === 0 || rest.subarray(0, bytesRead).equals(emptyFrame);
}

/** What Node writes behind the content if the content ended before the stream did. */
const emptyFrame = zstdCompressSync('', { params: { [constants.ZSTD_c_checksumFlag]: 1 } });

async function frameBytes(handle: FileHandle): Promise<number> {
  const header = Buffer.alloc(headerBytes);
  await handle.read(header, 0, headerBytes, 0);
  const descriptor = header.readUInt8(magicBytes);
  const isSingle = (descriptor & 0b10_0000) !== 0;
  const sizeBytes = descriptor < 0b100_0000 ? Number(isSingle) : 1 << (descriptor >> 6);
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 0b11] ?? 0;
  let at = magicBytes + 1 + (isSingle ? 0 : 1) + dictionaryBytes + sizeBytes;
  for (let isLast = false; !isLast; ) {
    const { bytesRead } = await handle.read(header, 0, blockHeaderBytes, at);
    if (bytesRead < blockHeaderBytes) throw new Error('its last block is missing');
    const block = header.readUIntLE(0, blockHeaderBytes);
    isLast = (block & 1) === 1;
    const isRepeated = ((block >> 1) & 0b11) === 1;
    at += blockHeaderBytes + (isRepeated ? 1 : block >> 3);
  }
  const hasChecksum = (descriptor & 0b100) !== 0;
  return at + (hasChecksum ? 4 : 0);
}

const magicBytes = 4;
/** Of the longest header of a frame, without its magic number 14. */
const headerBytes = 18;
const blockHeaderBytes = 3;
