/** A file to put into a container. Folders that are missing on its way are made. */
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

/** A symbolic link to put into a container. The target is not looked at. */
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

export type ArchivedType = 'file' | 'folder' | 'symlink' | 'hardlink' | 'device' | 'fifo';

/** One entry read from a container. Links are told, never followed. */
export interface ArchivedEntry {
  /**
   * Relative to the folder that was asked for; '' is that folder, or the file, itself. Never absolute, never
   * with `..`. Bytes that are no UTF-8 stand as `\xHH`, so that other names have other paths.
   */
  path: string;
  type: ArchivedType;
  /** Bytes of content; 0 for all but files. */
  size: number;
  mode: number;
  /** Epoch milliseconds. */
  modifiedAt: number;
  /** Where a symlink or hardlink points, in the container's words: not to be trusted. */
  linkTarget: string | undefined;
  /** The content, once. Read it before asking for the next entry; what is not read is skipped. */
  content(): AsyncIterable<Buffer>;
}
