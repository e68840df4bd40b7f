import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { taskRows } from '../../bounds/tasks.ts';
import { BadFile } from '../../suite/file-issues.ts';

/** A row of a file in JSON Lines, by its place in bytes. */
export interface RowSpan {
  offset: number;
  length: number;
  /** From 1. */
  line: number;
}

/**
 * The rows of a file that are not blank, one in memory at a time. Throws {@link BadFile} for one that is too
 * long, after which nothing can be read, and errors of the file system.
 */
export function* rowsOf(file: string): Generator<RowSpan & { bytes: Buffer }> {
  const descriptor = openRegular(file);
  try {
    let rest = Buffer.alloc(0);
    let offset = 0;
    let line = 0;
    const part = Buffer.allocUnsafe(1024 * 1024);
    for (let isEnd = false; !isEnd; ) {
      const length = readSync(descriptor, part);
      isEnd = length === 0;
      let bytes = Buffer.concat([rest, part.subarray(0, length)]);
      for (let end = bytes.indexOf(newline); end !== -1 || (isEnd && bytes.length > 0); ) {
        line += 1;
        const row = end === -1 ? bytes : bytes.subarray(0, end);
        if (row.length > taskRows.bytes.row) throw tooLong(file, line);
        if (!isBlank(row)) yield { offset, length: row.length, line, bytes: row };
        offset += end === -1 ? row.length : end + 1;
        bytes = end === -1 ? Buffer.alloc(0) : bytes.subarray(end + 1);
        end = bytes.indexOf(newline);
      }
      if (bytes.length > taskRows.bytes.row) throw tooLong(file, line + 1);
      rest = bytes;
    }
  } finally {
    closeSync(descriptor);
  }
}

const newline = 0x0a;

/** The text of one row. */
export function rowAt(file: string, { offset, length, line }: RowSpan): string {
  const descriptor = openRegular(file);
  try {
    const bytes = Buffer.alloc(length);
    const read = readSync(descriptor, bytes, 0, length, offset);
    return textOf(bytes.subarray(0, read), file, line);
  } finally {
    closeSync(descriptor);
  }
}

function openRegular(file: string): number {
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  if (fstatSync(descriptor).isFile()) return descriptor;
  closeSync(descriptor);
  throw new BadFile([{ file, line: 1, column: 1, path: '', message: 'is not a regular file' }]);
}

const blanks: ReadonlySet<number> = new Set([0x09, 0x0d, 0x20]);

function isBlank(row: Buffer): boolean {
  return row.every((byte) => blanks.has(byte));
}

/** The text of a row's bytes. Throws {@link BadFile} if they are not UTF-8. */
export function textOf(row: Buffer, file: string, line: number): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(row);
  } catch {
    throw new BadFile([{ file, line, column: 1, path: '', message: 'is not UTF-8' }]);
  }
}

function tooLong(file: string, line: number): BadFile {
  const message = `is longer than the limit of ${taskRows.bytes.row / 1024 ** 2} MiB`;
  return new BadFile([{ file, line, column: 1, path: '', message }]);
}
