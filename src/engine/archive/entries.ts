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
