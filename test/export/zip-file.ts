import { crc32, deflateRawSync, zstdCompressSync } from 'node:zlib';

/** A file of a zip, and in what its entry lies. */
export interface ZipPart {
  name: string;
  content: string | Buffer;
  method?: 'stored' | 'deflate' | 'zstd' | 'unknown';
  /** The size that the zip claims. */
  claimed?: number;
  crc?: number;
  encrypted?: boolean;
}

const methods = { stored: 0, deflate: 8, zstd: 93, unknown: 14 };

/** A zip by hand, so that a test can lie in it. */
export function zipOf(parts: readonly ZipPart[], { entries = parts.length } = {}): Buffer {
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const { name, content, method = 'deflate', claimed, crc, encrypted = false } of parts) {
    const plain = Buffer.from(content);
    const packed =
      method === 'deflate' ? deflateRawSync(plain) : method === 'zstd' ? zstdCompressSync(plain) : plain;
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(encrypted ? 1 : 0, 2);
    common.writeUInt16LE(methods[method], 4);
    common.writeUInt32LE(crc ?? crc32(plain), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(claimed ?? plain.length, 18);
    common.writeUInt16LE(Buffer.byteLength(name), 22);
    const file = Buffer.concat([Buffer.from('PK\u0003\u0004'), common, Buffer.from(name), packed]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(at, 10);
    directory.push(Buffer.from('PK\u0001\u0002\u0014\0'), common, rest, Buffer.from(name));
    files.push(file);
    at += file.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\u0005\u0006');
  end.writeUInt16LE(entries, 8);
  end.writeUInt16LE(entries, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...files, central, end]);
}
