import { isUtf8 } from 'node:buffer';

/**
 * An entry of an archive to put into a container: a file, a folder or a symbolic link. Missing parent folders
 * are created. Unless it says otherwise, it is of root, and from now.
 */
export interface NewEntry {
  /** Relative to the folder it is put in, or absolute. `..` is refused. */
  path: string;
  /** Of a file. */
  content?: string | Buffer | { size: number; bytes: AsyncIterable<Buffer> };
  /** Of a link. It is not checked. */
  linkTarget?: string | undefined;
  /** Set for a folder. */
  folder?: true;
  /** Permission bits, default 0o644, of a folder 0o755. */
  mode?: number;
  uid?: number;
  gid?: number;
  /** Epoch milliseconds. */
  modifiedAt?: number;
}

/** Entries of an `AsyncIterable` are sent as they arrive. */
export type NewEntries = Iterable<NewEntry> | AsyncIterable<NewEntry>;

export type ArchivedType = 'file' | 'folder' | 'symlink' | 'hardlink' | 'device' | 'fifo';

/** One entry read from a container. Links are reported, never followed. */
export interface ArchivedEntry {
  /**
   * Relative to the requested folder; '' is that folder, or the file, itself. Never absolute, never with
   * `..`. Bytes that are not UTF-8 appear as `\xHH`, so different names have different paths.
   */
  path: string;
  type: ArchivedType;
  /** Bytes of content; 0 for everything but files. */
  size: number;
  mode: number;
  /** Epoch milliseconds. */
  modifiedAt: number;
  /** Where a symlink or hardlink points, as the container reports it: do not trust it. */
  linkTarget: string | undefined;
  /** The content, readable once. Read it before asking for the next entry; unread content is skipped. */
  content(): AsyncIterable<Buffer>;
}

/** Bytes of the longest path that a call of Linux takes, with the zero at its end. */
export const pathMax = 4096;

/**
 * A file's name as text; different names give different texts. Names on Linux are bytes: valid UTF-8 is kept
 * as it is, other bytes become `\xHH`. If a name itself contains that pattern, its backslash becomes `\x5c`.
 * So decoding every `\xHH` as a byte gives the name back.
 */
export function nameText(bytes: Buffer): string {
  if (isUtf8(bytes)) return withoutPattern(bytes.toString());
  let text = '';
  let plain = '';
  for (let at = 0; at < bytes.length; ) {
    const first = bytes[at] ?? 0;
    const length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    const character = bytes.subarray(at, at + length);
    if (isUtf8(character)) {
      plain += character.toString();
      at += length;
    } else {
      text += `${withoutPattern(plain)}\\x${first.toString(16).padStart(2, '0')}`;
      plain = '';
      at += 1;
    }
  }
  return text + withoutPattern(plain);
}

function withoutPattern(text: string): string {
  return text.replace(/\\(?=x[0-9a-f]{2})/g, '\\x5c');
}
