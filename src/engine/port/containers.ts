import type { Duplex, Readable } from 'node:stream';
import type { ExecCommand, OpenedExec } from './exec.ts';

/**
 * A container to be made. It gets no health check, no log, no core dumps, no new privileges, no restart, and
 * the engine never removes it by itself.
 */
export interface ContainerRequest {
  /** Unique on the engine: where it is taken, `create` throws a `conflict`. */
  name?: string | undefined;
  imageId: string;
  /** Its first process. The image's own entrypoint and command are not used. */
  command: readonly string[];
  /** Whether that process has a standard input, which is open until the one who attached leaves. */
  stdin: boolean;
  /** Absolute; made if missing. */
  workingDir?: string | undefined;
  /** Name or id; the image's own when left out. */
  user?: string | undefined;
  labels: Readonly<Record<string, string>>;
  /**
   * `none`: nothing but its own loopback. `open`: the engine's default network. Or the network namespace of
   * another running container.
   */
  network: 'none' | 'open' | { sharedWith: string };
  /** Of its own; none for one that shares a network. */
  hostName?: string | undefined;
  /** Addresses by name, for `/etc/hosts`; only with an `open` network. */
  hosts?: Readonly<Record<string, string>>;
  /** Memory and swap together. */
  memoryBytes: number;
  /** Processors' worth of time, fractions allowed; unlimited when left out. */
  cpus?: number | undefined;
  /** Processes and threads. */
  pids: number;
  /** Open files of one process; the engine's default when left out. */
  nofile?: number | undefined;
  /** All that it has, such as `CHOWN`. */
  capabilities: readonly string[];
  /** A seccomp profile as JSON in the OCI engines' form; the engine's own when left out. */
  filter?: string | undefined;
  readOnlyRoot: boolean;
  /** Paths that no process may change, in place of the engine's own list. */
  readOnlyPaths?: readonly string[];
  /** An OCI runtime that the engine knows; its default when left out. */
  runtime?: string | undefined;
}

/** What an engine says of a container. */
export interface ContainerState {
  isRunning: boolean;
  /** The first process's id on the engine's machine; 0 while it does not run. */
  initPid: number;
  /** Epoch milliseconds of the engine's clock, by which its files' times go as well. */
  createdAt: number;
  /**
   * The folder on the engine's machine that holds all that the container itself wrote; undefined where there
   * is none, or something may be kept elsewhere.
   */
  layer: string | undefined;
  /** The networks that it is on. One that shares another's, or has none, is on none. */
  networks: string[];
}

export interface EngineProcess {
  /** On the engine's machine. */
  pid: number;
  /** On the engine's machine. */
  uid: number;
  /** As `ps` shows it: `S`, `Z`, ... */
  state: string;
  command: string;
}

/**
 * `comm`: at most 15 bytes of a program's name, as the kernel has it. `args`: its command line, of which the
 * process may have made megabytes.
 */
export type ToldCommand = 'args' | 'comm';

/** A path that differs from the container's image, folders among them. */
export interface FilesystemChange {
  path: string;
  kind: 'added' | 'modified' | 'deleted';
}

/** What happened to a container: the kernel killed one of its processes for memory, or an exec began. */
export type ContainerEvent = { kind: 'oom' } | { kind: 'exec-started'; execId: string };

export interface AttachRequest {
  /** Sees what the program prints to stderr, as it comes. */
  onStderr(bytes: Buffer): void;
  signal?: AbortSignal | undefined;
}

export interface CommitImage {
  repository: string;
  tag: string;
  labels: Readonly<Record<string, string>>;
}

export interface ContainerPort {
  /** Makes a container, which does not run yet. `warnings`: limits that the engine will not hold it to. */
  create(request: ContainerRequest, signal?: AbortSignal): Promise<{ id: string; warnings: string[] }>;
  start(id: string, signal?: AbortSignal): Promise<void>;
  /** Kills all its processes and waits for its end. One that does not run is fine. Two round trips. */
  kill(id: string): Promise<void>;
  state(id: string, signal?: AbortSignal): Promise<ContainerState>;
  /** All its processes, init among them; undefined where the engine cannot list them. */
  processes(id: string, told: ToldCommand): Promise<EngineProcess[] | undefined>;
  /** Changes the limit on processes and threads of a running container. */
  limitProcesses(id: string, pids: number): Promise<void>;
  /** Takes a running container off a network; what was connected is cut. */
  disconnect(id: string, network: string, signal?: AbortSignal): Promise<void>;
  /** Starts a command. Two round trips. */
  exec(id: string, command: ExecCommand): Promise<OpenedExec>;
  /**
   * Connects to the standard streams of a container's program; one that runs already loses what it said
   * before. Writing is the program's stdin and reading its stdout. The stream ends with the program, and
   * destroying it closes the program's stdin.
   */
  attach(id: string, request: AttachRequest): Promise<Duplex>;
  /** Unpacks a tar archive below an absolute folder that exists, running or not. */
  putArchive(id: string, folder: string, archive: Readable, signal?: AbortSignal): Promise<void>;
  /**
   * A tar archive of what lies at a path, a link not followed. Its entries' names begin with the path's last
   * part. A connection that is cut closes the stream without an end.
   */
  getArchive(
    id: string,
    path: string,
    signal?: AbortSignal,
  ): Promise<{ archive: Readable; isFolder: boolean }>;
  /** Whether a folder lies at a path. Links on the way are followed, a link there is not. Reads nothing. */
  isFolder(id: string, path: string, signal?: AbortSignal): Promise<boolean>;
  /** Bytes of all files that it wrote, and of those of its image that it changed in any way. */
  writtenBytes(id: string, signal?: AbortSignal): Promise<number>;
  /**
   * How its files differ from its image's: there may be millions, so nobody holds them all. A folder whose
   * content changed is `modified` too.
   */
  changes(id: string): AsyncIterable<FilesystemChange>;
  /** Makes an image of its files, without pausing it; resolves with the image's id. */
  commit(id: string, image: CommitImage, signal?: AbortSignal): Promise<string>;
  /**
   * What happened to it, in order: what the engine still remembers, then what happens. Ends when `signal`
   * aborts.
   */
  events(id: string, signal: AbortSignal): AsyncIterable<ContainerEvent>;
}
