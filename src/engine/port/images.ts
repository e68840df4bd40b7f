import type { Readable } from 'node:stream';

export interface Image {
  /** `sha256:...`; run by this, since a name may move and a local image has no digest. */
  id: string;
  /** The names it has now. */
  names: string[];
  arch: string;
  bytes: number;
  /** Epoch milliseconds. */
  madeAt: number;
  /**
   * Epoch milliseconds of when it was last given a name, by the engine's clock; when it was made, for one
   * that never was.
   */
  namedAt: number;
  labels: Readonly<Record<string, string>>;
  /** The user that its containers run as; empty for root. */
  user: string;
}

/** An image as a list shows it. */
export interface ListedImage {
  id: string;
  names: string[];
  /** Empty where the engine does not know. */
  parentId: string;
  bytes: number;
  labels: Readonly<Record<string, string>>;
  /** Epoch milliseconds. */
  createdAt: number;
}

export interface PullOptions {
  signal?: AbortSignal | undefined;
  /** Milliseconds that the registry may take to its first word. A cut-off network answers nothing. */
  firstWordMs?: number;
  /** Milliseconds that it may be silent after that: an engine does not always report a layer's extraction. */
  silenceMs?: number;
}

/** An archive that becomes an image of one layer. */
export interface ImportRequest {
  /** A tar archive of a whole root. The image is made only when the stream ends properly. */
  root: Readable;
  name: string;
  env: Readonly<Record<string, string>>;
  command: readonly string[];
  labels: Readonly<Record<string, string>>;
  signal?: AbortSignal | undefined;
}

export interface BuildRequest {
  dockerfile: string;
  name: string;
  signal?: AbortSignal | undefined;
}

/** Names are a repository and a tag: `offsite/base:latest`. */
export interface ImagePort {
  /** The image that a name or id stands for now, if there is one. Never pulls. */
  find(name: string, signal?: AbortSignal): Promise<Image | undefined>;
  /** All images, parents of others among them. */
  list(signal?: AbortSignal): Promise<ListedImage[]>;
  /** The images with all of these labels that have no name. */
  listNameless(labels: readonly string[], signal?: AbortSignal): Promise<ListedImage[]>;
  /** Gives an image one more name, or the one it has, which renews `namedAt`. */
  tag(image: string, name: string, signal?: AbortSignal): Promise<void>;
  pull(name: string, options?: PullOptions): Promise<void>;
  import(request: ImportRequest): Promise<void>;
  /** Builds an image that needs no file but its Dockerfile. Leaves no other container or image behind. */
  build(request: BuildRequest): Promise<void>;
}
