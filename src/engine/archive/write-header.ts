import { blockBytes, type TarHeader } from './tar-header.ts';

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
      ...{ size, uid, gid },
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
  const missing = (blockBytes - (content.length % blockBytes)) % blockBytes;
  return Buffer.concat([content, Buffer.alloc(missing)]);
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
