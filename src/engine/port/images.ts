import type { Readable } from 'node:stream';

export interface Image {
  /** `sha256:...`. Run an image by its id: a name may move, and a local image has no digest. */
  id: string;
  /** The names it has now. */
  names: string[];
  /**
   * Its names in registries with the digests that it has there: `name@sha256:...`. Empty for a local image.
   */
  digests: string[];
  arch: string;
  /** What its programs are made for: `linux/amd64`. */
  platform: string;
  bytes: number;
  /** Epoch milliseconds. */
  madeAt: number;
  /**
   * When it last got a name, in epoch milliseconds by the engine's clock; if it never did, when it was made.
   */
  namedAt: number;
  labels: Readonly<Record<string, string>>;
  /** The user that its containers run as; empty for root. */
  user: string;
  /** Where its commands start; empty for `/`. */
  workingDir: string;
  /** The variables that its commands get. */
  env: Readonly<Record<string, string>>;
  /** The folders that each of its containers keeps outside of its own layer, so that no commit has them. */
  volumes: readonly string[];
  /** The instructions that it runs in each build that starts with it (ONBUILD). */
  triggers: readonly string[];
  /** The beginning of the command that its containers run by default. */
  entrypoint: readonly string[];
  /** The rest of that command. */
  command: readonly string[];
  /** How it finds out whether its program works. */
  healthcheck: ImageHealthcheck | undefined;
}

export interface ImageHealthcheck {
  /** A program with its arguments, or a text for a shell. */
  command: string | readonly string[];
  /** Milliseconds, like the other times. Undefined for the engine's default. */
  interval: number | undefined;
  timeout: number | undefined;
  startPeriod: number | undefined;
  retries: number | undefined;
}

/** An image as a list shows it. */
export interface ListedImage {
  id: string;
  names: string[];
  /** Empty if the engine does not know. */
  parentId: string;
  bytes: number;
  labels: Readonly<Record<string, string>>;
  /** Epoch milliseconds. */
  createdAt: number;
}

/** The user's login to a registry. Never printed, kept or put into a container. */
export type RegistryLogin = { serveraddress: string } & (
  | { username: string; password: string }
  | { identitytoken: string }
);

/** Bytes of the layers that are known so far. */
export interface PullProgress {
  bytes: number;
  total: number;
}

export interface PullOptions {
  login?: RegistryLogin | undefined;
  /** Called as layers arrive. */
  onProgress?: ((progress: PullProgress) => void) | undefined;
  signal?: AbortSignal | undefined;
  /** Milliseconds until the registry's first answer. A network that is cut off gives no error. */
  firstWordMs?: number;
  /** Milliseconds that it may be silent after that: an engine does not always report a layer's extraction. */
  silenceMs?: number;
  /** Milliseconds for all of it. */
  totalMs?: number;
}

/** An archive that becomes an image of one layer. */
export interface ImportRequest {
  /** A tar archive of a whole root. The engine creates the image only if the stream ends properly. */
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
  /** A tar archive of the files that it may copy. Default: none. */
  context?: Readable;
  /** The Dockerfile's path in that archive; then `dockerfile` is not used. */
  dockerfilePath?: string;
  /** Default: the last stage. */
  target?: string | undefined;
  args?: Readonly<Record<string, string>>;
  labels?: Readonly<Record<string, string>>;
  /** Milliseconds that a step may print nothing. */
  silenceMs?: number;
  /** Receives what the build prints, as it comes. */
  onOutput?(text: string): void;
  signal?: AbortSignal | undefined;
}

/** Names are a repository and a tag: `offsite/base:latest`. */
export interface ImagePort {
  /** The image that a name or id refers to now, if there is one. Never pulls. */
  find(name: string, signal?: AbortSignal): Promise<Image | undefined>;
  /** All images, including parents of others. */
  list(signal?: AbortSignal): Promise<ListedImage[]>;
  /** The images without a name that have all of these labels. */
  listNameless(labels: readonly string[], signal?: AbortSignal): Promise<ListedImage[]>;
  /** Gives an image another name, or the same one again, which renews `namedAt`. */
  tag(image: string, name: string, signal?: AbortSignal): Promise<void>;
  pull(name: string, options?: PullOptions): Promise<void>;
  import(request: ImportRequest): Promise<void>;
  /** One archive of images, by their ids, in the form that the engine loads again. It may be of any size. */
  save(ids: readonly string[], signal?: AbortSignal): Promise<Readable>;
  /** Adds the images of an archive that {@link save} gave. Resolves with the ids of those without names. */
  load(archive: Readable, signal?: AbortSignal): Promise<string[]>;
  /**
   * Builds an image with the engine's classic builder. Leaves no container behind. Throws `IMAGE_NOT_BUILT`,
   * an `input` error, if a step fails.
   */
  build(request: BuildRequest): Promise<void>;
}
