/** A file to put into a container. Missing parent folders are created. */
export interface NewFile {
  /** Relative to the folder it is put in, or absolute. `..` is refused. */
  path: string;
  content: Buffer | string;
  /** Permission bits, default 0o644. */
  mode?: number;
  /** Numeric owner, default 0 (root). */
  uid?: number;
  gid?: number;
}

/** A symbolic link to put into a container. The target is not checked. */
export interface NewLink {
  path: string;
  linkTarget: string;
}

export interface NewFolder {
  path: string;
  folder: true;
  mode?: number;
  uid?: number;
  gid?: number;
}

export type NewEntry = NewFile | NewLink | NewFolder;

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

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * A file's name as text; different names give different texts. Names on Linux are bytes: valid UTF-8 is kept
 * as it is, other bytes become `\xHH`. If a name itself contains that pattern, its backslash becomes `\x5c`.
 * So decoding every `\xHH` as a byte gives the name back.
 */
export function nameText(bytes: Buffer): string {
  const whole = decoded(bytes);
  if (whole !== undefined) return withoutPattern(whole);
  let text = '';
  let plain = '';
  for (let at = 0; at < bytes.length; ) {
    const character = characterAt(bytes, at);
    if (character === undefined) {
      text += `${withoutPattern(plain)}\\x${(bytes[at] ?? 0).toString(16).padStart(2, '0')}`;
      plain = '';
      at += 1;
    } else {
      plain += character;
      at += Buffer.byteLength(character);
    }
  }
  return text + withoutPattern(plain);
}

function withoutPattern(text: string): string {
  return text.replace(/\\(?=x[0-9a-f]{2})/g, '\\x5c');
}

/** The character that begins at `at`; undefined if none does. */
function characterAt(bytes: Buffer, at: number): string | undefined {
  const first = bytes[at] ?? 0;
  const length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return decoded(bytes.subarray(at, at + length));
}

function decoded(bytes: Buffer): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
