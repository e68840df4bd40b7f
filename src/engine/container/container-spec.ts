/** What a container is made of and held to. */
export interface ContainerSpec {
  /** The id, not a name: names move. */
  imageId: string;
  /** Labels of the caller's; the engine room adds its own. */
  labels?: Readonly<Record<string, string>>;
  /**
   * `none`: nothing but its own loopback. `open`: the engine's default bridge. Or the network namespace of
   * another running container.
   */
  network: 'none' | 'open' | { sharedWith: string };
  /**
   * `compatible`: root with the five capabilities that package managers, chown and su need. `strict`: no
   * capability at all, and a user that is not root.
   */
  security: 'compatible' | 'strict';
  /** Memory and swap together. */
  memoryBytes: number;
  /** Processors' worth of time, fractions allowed. */
  cpus: number;
  /** Processes and threads. */
  pids: number;
  /**
   * Open files of one process; the engine's default when left out. It cannot be above what the engine itself
   * may open.
   */
  nofile?: number;
  /** What all its files may take; looked at once a second while a command runs. Unlimited when left out. */
  diskBytes?: number | undefined;
  /**
   * Environment of everything that is run in it. It never becomes part of the container or of an image made
   * of it.
   */
  env?: Readonly<Record<string, string>>;
  /** Absolute; made if missing. */
  workingDir: string;
  /** Name or id; the image's own when left out. */
  user?: string | undefined;
  /**
   * What runs in place of the idle init, and as long as the container does. Its stdin is open until the one
   * who attached leaves. Its files cannot be written.
   */
  program?: readonly string[] | undefined;
  /**
   * Whether the engine must hold it to our filter of system calls, as it must when left out, or may lack what
   * that takes; then it has whatever the engine gives it.
   */
  filter?: 'required' | 'if-available' | undefined;
  /** An OCI runtime the engine knows, such as `runsc`; its default when left out. */
  runtime?: string | undefined;
}
