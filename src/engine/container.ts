import type { Duplex, Readable } from 'node:stream';
import { OffsiteError } from '../base/offsite-error.ts';
import { Semaphore } from '../base/semaphore.ts';
import { keptWorkspaces } from '../bounds/sandbox.ts';
import { type Carried, type CarryRequest, carryBetween } from './archive/carry.ts';
import type { ArchivedEntry, NewEntries } from './archive/entries.ts';
import { type CopyLimits, openArchive, type RawArchive, unpackArchive } from './archive/raw-archive.ts';
import { type ArchiveCopy, kindOfPath, type PathKind, readArchive } from './archive/read.ts';
import type { FindTar } from './archive/tar-program.ts';
import { putEntries } from './archive/write-archive.ts';
import { type LayerRequest, layerPaths } from './changes/layer-paths.ts';
import type { ContainerSpec } from './container/container-spec.ts';
import { diskReserveReached, isReserveReached } from './container/disk-space.ts';
import { diskUse, hasHoles, imageBytes, isDiskVisible, spaceOf } from './container/disk-use.ts';
import { type DiskWatch, watchDisk, whileFilling } from './container/disk-watch.ts';
import { type ContainerProcess, type KillAllResult, killAll, listProcesses } from './container/kill-all.ts';
import { ignoreRemovalFailure, removeContainer } from './container/remove.ts';
import { blamedOnEnd, hostFactsOf, type RunningContainer } from './container/running-container.ts';
import type { RuntimeFacts } from './container/runtime-probe.ts';
import type { ExecRequest, ExecResult } from './exec/exec-request.ts';
import { execute } from './exec/execute.ts';
import { type ContainerTerminal, openTerminal, type TerminalRequest } from './exec/terminal.ts';
import type { OwnFiles } from './own-files/volume.ts';
import { snapshotLabels } from './owned-objects.ts';
import type { AttachRequest, CommitImage, FilesystemChange } from './port/containers.ts';
import type { EnginePort } from './port/engine-port.ts';
import { runScript } from './script/run-script.ts';
import type { ScriptRequest, ScriptResult } from './script/step-recorder.ts';

/**
 * An isolated environment for commands. It runs only Offsite's idle init; `exec` and `runScript` start
 * commands in it. Disposal removes it, even if something runs in it. All methods throw infrastructure errors
 * if the engine fails.
 */
export interface Container extends AsyncDisposable {
  readonly id: string;
  /** Absolute; where its commands start unless they say otherwise. */
  readonly workingDir: string;
  /** The variables that every command in it gets. */
  readonly env: Readonly<Record<string, string>>;
  /** Whether the engine lists its processes. If not, `killAll` always restarts it. */
  readonly listsProcesses: boolean;
  /** Whether the engine's storage itself limits what it takes of the disk. */
  readonly hasQuota: boolean;
  /** Starts init. One round trip, by far the slowest. */
  start(signal?: AbortSignal): Promise<void>;
  /**
   * Writes files below `at` (default `/`), making missing folders. Works before `start` as well. One round
   * trip.
   */
  put(entries: NewEntries, at?: string, signal?: AbortSignal): Promise<void>;
  /** Connects to the standard streams of its `program`; best called before `start`. One round trip. */
  attach(request: AttachRequest): Promise<Duplex>;
  /** Runs one command. Three round trips. */
  exec(request: ExecRequest): Promise<ExecResult>;
  /** Runs one command on a terminal of its own, for a person. Three round trips. */
  terminal(request: TerminalRequest): Promise<ContainerTerminal>;
  /** Runs a bash script; each of its commands is a step. Two round trips. */
  runScript(request: ScriptRequest): Promise<ScriptResult>;
  /** Kills every process but init and checks that none is left; kill-all.ts explains `restarted`. */
  killAll(signal?: AbortSignal): Promise<KillAllResult>;
  /** Takes it off its network for good. Three round trips. */
  disconnect(signal?: AbortSignal): Promise<void>;
  /** Lists the processes other than init. */
  processes(): Promise<ContainerProcess[]>;
  /**
   * Lists how its files differ from its image's, as the engine sees it. Slow, and misses a file whose size
   * and times were restored.
   */
  changes(): AsyncIterable<FilesystemChange>;
  /**
   * When it was created: epoch milliseconds by the engine's clock, like the times of its files. One round
   * trip.
   */
  madeAt(signal?: AbortSignal): Promise<number>;
  /** Lists everything in its own layer, if this process can read it; see layer-paths.ts. One round trip. */
  layerPaths(request: LayerRequest): Promise<string[] | undefined>;
  /**
   * Whether nothing was created, changed or deleted at or below a path; undefined if its layer cannot be
   * read.
   */
  isUntouched(path: string, signal?: AbortSignal): Promise<boolean | undefined>;
  /**
   * What exists at an absolute path: links on the way are followed, a link at the path is not. One round trip
   * that reads no content.
   */
  kindOf(path: string, signal?: AbortSignal): Promise<PathKind>;
  /** Bytes that it takes on the engine's disk: see disk-use.ts. */
  diskUse(signal?: AbortSignal): Promise<number>;
  /** Whether its disk use is measured exactly, and not taken from the engine's own count. */
  seesDisk(signal?: AbortSignal): Promise<boolean>;
  /** Bytes of an image of it, in which sparse files have their full length. */
  imageBytes(signal?: AbortSignal): Promise<number>;
  /** From now on, what it takes of the disk now does not count towards its limit. */
  forgiveDisk(signal?: AbortSignal): Promise<void>;
  /** Does work by which the engine writes into it, with its disk watched: see disk-watch.ts. */
  fill<T>(limits: CopyLimits, work: (signal: AbortSignal | undefined) => Promise<T>): Promise<T>;
  /** Ends its processes when it takes more of the disk than `limit` bytes. */
  watchDisk(limit: number): DiskWatch;
  /**
   * Reads a file or folder while it streams, and keeps its archive if `copy` is given. Throws
   * `ENGINE_NOT_FOUND`; `ENGINE_TOO_LARGE` if its files have more than `maxBytes`.
   */
  archive(
    path: string,
    signal?: AbortSignal,
    maxBytes?: number,
    copy?: ArchiveCopy,
  ): AsyncIterable<ArchivedEntry>;
  /**
   * Copies chosen files at a path to the same path of another container of this engine. Two round trips; see
   * carry.ts.
   */
  carryTo(other: Container, path: string, request: CarryRequest): Promise<Carried>;
  /** The engine's archive of a path, for {@link unpack}. Throws `ENGINE_NOT_FOUND`. One round trip. */
  pack(path: string, limits: CopyLimits): Promise<RawArchive>;
  /** Unpacks what {@link pack} gave for the same path of a container of any engine. One round trip. */
  unpack(path: string, archive: Readable, signal?: AbortSignal): Promise<void>;
  /**
   * Creates an image of its files; resolves with the image's id. Throws `IMAGE_TOO_LARGE` if they are longer
   * than `maxBytes`.
   */
  commit(request: CommitImage, signal?: AbortSignal): Promise<string>;
  /** Removes it. Can be called again. */
  remove(): Promise<void>;
  /** The same, but if the engine fails, it is removed when the engine is disposed. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** What a container gets from its engine. */
export interface ContainerParts {
  /** Default: that of a plain runtime. */
  runtime?: RuntimeFacts;
  /** Default: none. */
  own?: OwnFiles | undefined;
  /** Whether the engine's storage itself limits what it takes. Default: no. */
  hasQuota?: boolean;
  /** Default: holes of files count and are copied as zeros. */
  tar?: FindTar;
}

/** The container `id`, which was created from `spec`. */
export function containerOf(
  port: EnginePort,
  id: string,
  spec: ContainerSpec,
  { runtime, own, hasQuota = false, tar }: ContainerParts = {},
): Container {
  const running: RunningContainer = {
    port,
    id,
    env: spec.env ?? {},
    user: spec.user,
    own,
    listsProcesses: runtime?.listsProcesses ?? true,
    pids: spec.pids,
    memoryBytes: spec.memoryBytes,
    diskBytes: spec.diskBytes,
    hasQuota,
    // A kernel of the runtime's own shares its processes with no other container.
    holes:
      tar && (runtime?.listsProcesses ?? true)
        ? {
            prepare: (signal) => hostFactsOf(running, signal),
            areThere: (signal) => hasHoles(running, signal),
            tar,
          }
        : undefined,
    diskSeen: undefined,
    activeExecs: new Set(),
    execCount: 0,
    hostFacts: undefined,
    oomKills: 0,
    // With a kernel of its own.
    canEndItself: runtime?.listsProcesses === false,
    isLost: false,
    restarts: 0,
    endings: new Semaphore(1),
  };
  const { containers } = port;
  const blamed = <T>(work: Promise<T>) => blamedOnEnd(running, work);
  let removal: Promise<void> | undefined;
  const remove = () => {
    removal ??= removeContainer(port, id).catch((error: unknown) => {
      removal = undefined;
      throw error;
    });
    return removal;
  };
  return {
    id,
    workingDir: spec.workingDir,
    env: running.env,
    listsProcesses: running.listsProcesses,
    hasQuota,
    start: (signal) => containers.start(id, signal),
    put: (entries, at = '/', signal) => putEntries(running, entries, at, signal),
    attach: (request) => containers.attach(id, request),
    exec: (request) => blamed(execute(running, request)),
    terminal: (request) => openTerminal(running, request),
    runScript: (request) => blamed(runScript(running, request)),
    killAll: (signal) => blamed(killAll(running, { signal })),
    disconnect: (signal) => disconnectContainer(running, signal),
    processes: () => listProcesses(running, 'args'),
    changes: () => containers.changes(id),
    diskUse: (signal) => diskUse(running, signal),
    seesDisk: (signal) => isDiskVisible(running, signal),
    imageBytes: (signal) => imageBytes(running, signal),
    async forgiveDisk(signal) {
      if (spec.diskBytes !== undefined) running.diskBytes = spec.diskBytes + (await diskUse(running, signal));
    },
    fill: (limits, work) => whileFilling(running, limits, work),
    watchDisk: (limit) => watchDisk(running, limit),
    madeAt: async (signal) => (await containers.state(id, signal)).createdAt,
    layerPaths: (request) => layerPaths(running, request),
    async isUntouched(path, signal) {
      const touched = await layerPaths(running, { except: [], below: path, onlyFirst: true, signal });
      return touched && touched.length === 0;
    },
    kindOf: (path, signal) => kindOfPath(running, path, signal),
    archive: (path, signal, maxBytes, copy) => readArchive(running, path, signal, maxBytes, copy),
    carryTo: (other, path, request) =>
      other.fill(request, (signal = request.signal) =>
        carryBetween(running, other.id, path, { ...request, signal }),
      ),
    pack: (path, limits) => openArchive({ port, id }, path, limits),
    unpack: (path, archive, signal) => unpackArchive(port, { id, path }, archive, signal),
    commit: (request, signal) => commitContainer(running, request, signal),
    remove,
    [Symbol.asyncDispose]: () => remove().catch(ignoreRemovalFailure),
  };
}

/**
 * Disconnects a running container from every network, so that only its loopback is left; open connections are
 * cut. It stays disconnected when it is started again. Three round trips.
 */
async function disconnectContainer(
  { port: { containers }, id }: RunningContainer,
  signal?: AbortSignal,
): Promise<void> {
  const { networks } = await containers.state(id, signal);
  for (const network of networks) await containers.disconnect(id, network, signal);
  const left = (await containers.state(id, signal)).networks;
  if (left.length === 0) return;
  throw new OffsiteError(`The engine left a container on its network (${left.join(', ')}).`, {
    code: 'ENGINE_CANNOT_ENFORCE',
    kind: 'infrastructure',
  });
}

/**
 * Creates an image of the container's files and resolves with its id. The container is not paused, so nothing
 * but init should run in it. An image has no holes, and nothing ends an engine that makes one. So this throws
 * `IMAGE_TOO_LARGE` if the files are far longer than the container's disk limit, and `DISK_FULL` if the image
 * would take of the machine's own reserve.
 */
async function commitContainer(
  container: RunningContainer,
  image: CommitImage,
  signal?: AbortSignal,
): Promise<string> {
  const { port, id, diskBytes } = container;
  if (diskBytes !== undefined) {
    const bytes = await imageBytes(container, signal);
    if (bytes > Math.max(diskBytes, keptWorkspaces.bytes.image)) throw imageTooLarge(bytes);
    const space = await spaceOf(container, signal);
    if (space && isReserveReached({ ...space, freeBytes: space.freeBytes - bytes })) {
      const [folder = ''] = (await hostFactsOf(container)).storage;
      throw diskReserveReached(folder, space, `an image would take ${Math.ceil(bytes / 2 ** 20)} MiB`);
    }
  }
  const labels = { ...image.labels, ...snapshotLabels(port.clock.now()) };
  return port.containers.commit(id, { ...image, labels }, signal);
}

function imageTooLarge(bytes: number): OffsiteError {
  const gibibytes = Math.floor(bytes / 2 ** 30);
  return new OffsiteError(
    `its files have ${gibibytes} GiB, and an image cannot keep the holes of sparse files`,
    {
      code: 'IMAGE_TOO_LARGE',
      kind: 'input',
      hint: 'Make sparse files shorter, or make them where they are needed.',
    },
  );
}
