import type { Duplex, Readable } from 'node:stream';

/**
 * A container to create. It has no health check, log, core dumps, new privileges or restarts, and the engine
 * never removes it by itself.
 */
export interface ContainerRequest {
  /** Unique on the engine: if it is taken, `create` throws a `conflict`. */
  name?: string | undefined;
  imageId: string;
  /** Its first process. The image's own entrypoint and command are not used. */
  command: readonly string[];
  /** Whether that process has a standard input, which stays open until the attached client leaves. */
  stdin: boolean;
  /** Absolute; created if missing. */
  workingDir?: string | undefined;
  /** Name or id; default: the image's own. */
  user?: string | undefined;
  labels: Readonly<Record<string, string>>;
  /**
   * `none`: nothing but its own loopback. `open`: the engine's default network. Or the network namespace of
   * another running container.
   */
  network: 'none' | 'open' | { sharedWith: string };
  /**
   * Has the engine set up the network `none`. That takes longer than the runtime's own empty namespace, which
   * with some runtimes has not even a loopback.
   */
  networkByEngine?: boolean;
  /** Its own host name. An engine may give it that of the container whose network it shares. */
  hostName?: string | undefined;
  /** Another running container whose process namespace it shares; it ends with that one's first process. */
  processesOf?: string | undefined;
  /** Added to the image's own variables. */
  env?: Readonly<Record<string, string>>;
  /**
   * Folders in memory, which counts towards `memoryBytes`. They begin empty, and any user may write there.
   */
  memoryFolders?: readonly MemoryFolder[];
  /** Addresses by name, for `/etc/hosts`; only with a network that the engine sets up. */
  hosts?: Readonly<Record<string, string>>;
  /** Memory and swap together. */
  memoryBytes: number;
  /** Processors' worth of time, fractions allowed; default: unlimited. */
  cpus?: number | undefined;
  /**
   * Bytes that the engine's storage lets it write; on some storage, with those of its image. An engine
   * without such quotas refuses the request.
   */
  quotaBytes?: number | undefined;
  /** Processes and threads. */
  pids: number;
  /** Open files of one process; default: the engine's. */
  nofile?: number | undefined;
  /** All its capabilities, such as `CHOWN`. */
  capabilities: readonly string[];
  /** A seccomp profile as JSON in the engines' form; default: the engine's own. */
  filter?: string | undefined;
  readOnlyRoot: boolean;
  /** Paths that no process may change; replaces the engine's own list. */
  readOnlyPaths?: readonly string[];
  /**
   * Protects `/dev`, if it is one of these paths, by a mount in place of the list, which some runtimes
   * ignore.
   */
  devicesByMount?: boolean;
  mounts?: readonly (Mount | FolderMount)[] | undefined;
  /** An OCI runtime that the engine knows; default: the engine's. */
  runtime?: string | undefined;
}

/** A volume in a container's files. */
export interface Mount {
  /** The volume's name. The engine makes an empty volume without labels if there is none of that name. */
  volume: string;
  /** Absolute; created if missing. */
  path: string;
  readOnly: boolean;
}

/** A folder of the engine's machine in a container's files, read-only. Without it, the engine refuses. */
export interface FolderMount {
  /** Absolute. */
  folder: string;
  /** Absolute. */
  path: string;
}

export interface MemoryFolder {
  /** Absolute. */
  path: string;
  maxBytes: number;
}

/** What an engine reports about a container. */
export interface ContainerState {
  isRunning: boolean;
  /** How its first process ended. Undefined before the start, and while the process runs. */
  exitCode: number | undefined;
  /** Whether the kernel killed a process of it for lack of memory, as far as the engine has noticed. */
  oomKilled: boolean;
  /** The first process's id on the engine's machine; 0 while it does not run. */
  initPid: number;
  /** Epoch milliseconds by the engine's clock, like the times of its files. */
  createdAt: number;
  /**
   * The folder on the engine's machine that holds everything the container wrote; undefined if there is none,
   * or if some files may be stored elsewhere.
   */
  layer: string | undefined;
  /**
   * All paths on the engine's machine where the container's writes to the disk end up: its layer, its
   * writable volumes, and the files that the engine mounts into it. Empty if the engine does not say.
   */
  storage: readonly string[];
  /** The networks that it is on. Empty if it shares the network of another container, or has none. */
  networks: string[];
}

/** Where a running container is on its engine's machine. */
export type HostFacts = Pick<ContainerState, 'initPid' | 'layer' | 'storage'>;

export interface EngineProcess {
  /** On the engine's machine. */
  pid: number;
  /** In the container. */
  uid: number;
  /** As `ps` shows it: `S`, `Z`, ... */
  state: string;
  command: string;
}

/**
 * `comm`: at most 15 bytes of a program's name, from the kernel. `args`: its command line, which the process
 * can make megabytes long.
 */
export type CommandColumn = 'args' | 'comm';

/** A path that differs from the container's image, folders among them. */
export interface FilesystemChange {
  path: string;
  kind: 'added' | 'modified' | 'deleted';
}

/**
 * What happened to a container: it started, the kernel killed one of its processes for memory, an exec began,
 * a client or the engine itself requested its end, or it ended.
 */
export type ContainerEvent =
  | { kind: 'started' | 'oom' | 'kill-requested' | 'ended' }
  | { kind: 'exec-started'; execId: string };

export interface AttachRequest {
  /** Receives what the program prints to stderr, as it arrives. */
  onStderr(bytes: Buffer): void;
  /** Whether a write waits until the engine has taken it. Default: never, see `docker/attach.ts`. */
  waitsForReader?: boolean;
  signal?: AbortSignal | undefined;
}

export interface CommitImage {
  repository: string;
  tag: string;
  labels: Readonly<Record<string, string>>;
}

export interface ContainerPort {
  /** Creates a container, which does not run yet. `warnings`: limits that the engine will not enforce. */
  create(request: ContainerRequest, signal?: AbortSignal): Promise<{ id: string; warnings: string[] }>;
  start(id: string, signal?: AbortSignal): Promise<void>;
  /** Kills all its processes and waits for its end. Does nothing if it does not run. Two round trips. */
  kill(id: string): Promise<void>;
  state(id: string, signal?: AbortSignal): Promise<ContainerState>;
  /** The same facts of a running container as `state`, without a request where the engine's files tell. */
  hostFacts(id: string, signal?: AbortSignal): Promise<HostFacts>;
  /** All its processes, init among them; undefined where the engine cannot list them. */
  processes(id: string, column: CommandColumn): Promise<EngineProcess[] | undefined>;
  /**
   * Changes the limit on processes and threads of a running container; `memoryBytes` is its current limit.
   */
  limitProcesses(id: string, limits: Pick<ContainerRequest, 'pids' | 'memoryBytes'>): Promise<void>;
  /** Takes a running container off a network; its open connections are cut. */
  disconnect(id: string, network: string, signal?: AbortSignal): Promise<void>;
  /** Starts a command. Two round trips. */
  exec(id: string, command: ExecCommand): Promise<OpenedExec>;
  /** Starts a command on a terminal of its own, for a person. Three round trips. */
  terminal(id: string, command: TerminalCommand): Promise<OpenedTerminal>;
  /**
   * Connects to the standard streams of a container's program; output from before the call is lost. What is
   * written to the stream is the program's stdin; what is read from it is the program's stdout. The stream
   * ends with the program, and destroying it closes the program's stdin.
   */
  attach(id: string, request: AttachRequest): Promise<Duplex>;
  /** Unpacks a tar archive below an existing absolute folder. The container need not run. */
  putArchive(id: string, folder: string, archive: Readable, signal?: AbortSignal): Promise<void>;
  /**
   * Returns a tar archive of a path, without following a link there. Its entries' names begin with the path's
   * last part. If the connection is cut, the stream closes without an end. The entries have their true owners
   * only with `owners`, which on some engines costs further round trips and needs a container that runs.
   */
  getArchive(
    id: string,
    path: string,
    signal?: AbortSignal,
    options?: { owners?: boolean },
  ): Promise<Readable>;
  /** Whether a path is a folder. Follows links on the way, but not a link at the path. Reads no content. */
  isFolder(id: string, path: string, signal?: AbortSignal): Promise<boolean>;
  /**
   * The engine's own count of the bytes that it wrote, including files of its image that it changed in any
   * way. Some engines count the holes of sparse files, and none counts a file that is open but deleted, so
   * use it only where the disk itself cannot be read: see disk-use.ts.
   */
  writtenBytes(id: string, signal?: AbortSignal): Promise<number>;
  /**
   * Lists how its files differ from its image's. There may be millions, so do not hold them all. A folder
   * whose content changed is `modified` too.
   */
  changes(id: string): AsyncIterable<FilesystemChange>;
  /** Creates an image of its files, without pausing it; resolves with the image's id. */
  commit(id: string, image: CommitImage, signal?: AbortSignal): Promise<string>;
  /**
   * The events of a container in order: first those that the engine still remembers, then new ones. Ends when
   * `signal` aborts. Undefined for an engine that does not report them.
   */
  events: ((id: string, signal: AbortSignal) => AsyncIterable<ContainerEvent>) | undefined;
}

export type OutputStream = 'stdout' | 'stderr';

/** Part of what a process wrote, in order. The buffer is reused: copy what you keep. */
export interface OutputPiece {
  stream: OutputStream;
  bytes: Buffer;
}

export interface ExecCommand {
  argv: readonly string[];
  /** Sent in the request's body, never in argv or a URL. */
  env?: Readonly<Record<string, string>>;
  cwd?: string | undefined;
  user?: string | undefined;
  /** Sent to the process and closed. Without it the process reads end-of-file at once. */
  stdin?: Buffer | string | Readable | undefined;
  /** Whether it reads all its input before it ends, unless it is killed. Default: nobody knows. */
  readsInput?: boolean;
  onPiece(piece: OutputPiece): void;
  signal?: AbortSignal | undefined;
}

export interface ExecState {
  running: boolean;
  exitCode: number | null;
  /**
   * Whether the engine could not start it. Some engines report that only here, and the reason as output of
   * the command.
   */
  neverStarted: boolean;
}

/**
 * A command running in a container, and the attached stream of what it prints. Disposing closes the stream.
 */
export interface OpenExec extends Disposable {
  /** As the engine knows it. Undefined if the container's init started it. */
  readonly id: string | undefined;
  /**
   * Resolves when the engine ended the stream, or when init said that the command ended; rejects when the
   * stream broke. Says nothing about success.
   */
  readonly streamEnded: Promise<void>;
  inspect(): Promise<ExecState>;
}

/** `started: false`: the engine answered the start with "cannot run this". */
export type OpenedExec = { started: true; exec: OpenExec } | { started: false; message: string };

/** In cells. */
export interface TerminalSize {
  columns: number;
  rows: number;
}

/** A command for a person, on a terminal of its own. */
export interface TerminalCommand {
  argv: readonly string[];
  /** Sent in the request's body, never in argv or a URL. */
  env?: Readonly<Record<string, string>>;
  cwd?: string | undefined;
  user?: string | undefined;
  size: TerminalSize;
  signal?: AbortSignal | undefined;
}

/** A command running on a terminal in a container. Disposing closes the stream. */
export interface OpenTerminal extends Disposable {
  /**
   * The raw bytes of the terminal: keys are written to it, and output for the screen is read from it. Ends
   * when the engine ends the stream, which says nothing about success.
   */
  readonly stream: Duplex;
  /** Notifies the command that its terminal has another size. Does nothing once the command has ended. */
  resize(size: TerminalSize): Promise<void>;
  inspect(): Promise<ExecState>;
}

/** `started: false`: the engine answered the start with "cannot run this". */
export type OpenedTerminal = { started: true; terminal: OpenTerminal } | { started: false; message: string };
