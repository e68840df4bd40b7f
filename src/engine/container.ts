import type { Readable } from 'node:stream';
import { remembered } from '../base/deadline.ts';
import { infrastructureError, inputError, type OffsiteError } from '../base/offsite-error.ts';
import { Semaphore } from '../base/semaphore.ts';
import { keptWorkspaces } from '../bounds/sandbox.ts';
import { type Carried, type CarryRequest, carryBetween } from './archive/carry.ts';
import type { ArchivedEntry, NewEntries } from './archive/entries.ts';
import { type CopyLimits, openArchive, unpackArchive } from './archive/raw-archive.ts';
import { type ArchiveCopy, kindOfPath, readArchive } from './archive/read.ts';
import type { FindTar } from './archive/tar-program.ts';
import { putEntries } from './archive/write-archive.ts';
import { type LayerRequest, layerPaths } from './changes/layer-paths.ts';
import { userOfInit } from './container/container-request.ts';
import type { ContainerSpec } from './container/container-spec.ts';
import { diskReserveReached, isReserveReached } from './container/disk-space.ts';
import { diskUse, imageBytes, isDiskVisible, spaceOf } from './container/disk-use.ts';
import { watchDisk, whileFilling } from './container/disk-watch.ts';
import { killAll, listProcesses } from './container/kill-all.ts';
import { ignoreRemovalFailure, removeContainer } from './container/remove.ts';
import { blamedOnEnd, hostFactsOf, type RunningContainer } from './container/running-container.ts';
import type { RuntimeFacts } from './container/runtime-probe.ts';
import type { ExecRequest } from './exec/exec-request.ts';
import { execute } from './exec/execute.ts';
import { openTerminal, type TerminalRequest } from './exec/terminal.ts';
import type { OwnFiles } from './own-files/volume.ts';
import { snapshotLabels } from './owned-objects.ts';
import type { AttachRequest, CommitImage } from './port/containers.ts';
import type { EnginePort } from './port/engine-port.ts';
import { runScript } from './script/run-script.ts';
import type { ScriptRequest } from './script/step-recorder.ts';

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

/**
 * The container `id`, which was created from `spec`: an isolated environment for commands. It runs only
 * Offsite's init; `exec` and `runScript` start commands in it. Disposal removes it, even if something
 * runs in it. All methods throw infrastructure errors if the engine fails.
 */
export function containerOf(
  port: EnginePort,
  id: string,
  spec: ContainerSpec,
  { runtime, own, hasQuota = false, tar }: ContainerParts = {},
) {
  const running: RunningContainer = {
    port,
    id,
    env: spec.env ?? {},
    user: spec.user,
    own,
    initUser: own && { name: userOfInit(spec) },
    listsProcesses: runtime?.listsProcesses ?? true,
    pids: spec.pids,
    memoryBytes: spec.memoryBytes,
    diskBytes: spec.diskBytes,
    hasQuota,
    // A kernel of the runtime's own shares its processes with no other container.
    tar: (runtime?.listsProcesses ?? true) ? tar : undefined,
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
  const once = remembered<void>();
  const remove = () => once('removal', () => removeContainer(port, id));
  return {
    id,
    /** Absolute; where its commands start unless they say otherwise. */
    workingDir: spec.workingDir,
    /** The variables that every command in it gets. */
    env: running.env,
    /** Whether the engine lists its processes. If not, `killAll` always restarts it. */
    listsProcesses: running.listsProcesses,
    /** Whether the engine's storage itself limits what it takes of the disk. */
    hasQuota,
    /** Starts init. One round trip, by far the slowest. */
    start: (signal?: AbortSignal) => containers.start(id, signal),
    /**
     * Writes files below `at` (default `/`), making missing folders. Works before `start` as well. One round
     * trip.
     */
    put: (entries: NewEntries, at = '/', signal?: AbortSignal) => putEntries(running, entries, at, signal),
    /** Connects to the standard streams of its `program`; best called before `start`. One round trip. */
    attach: (request: AttachRequest) => containers.attach(id, request),
    /** Runs one command. Three round trips. */
    exec: (request: ExecRequest) => blamed(execute(running, request)),
    /** Runs one command on a terminal of its own, for a person. Three round trips. */
    terminal: (request: TerminalRequest) => openTerminal(running, request),
    /** Runs a bash script; each of its commands is a step. Two round trips. */
    runScript: (request: ScriptRequest) => blamed(runScript(running, request)),
    /** Kills every process but init and checks that none is left; kill-all.ts explains `restarted`. */
    killAll: (signal?: AbortSignal) => blamed(killAll(running, { signal })),
    /** Takes it off its network for good. Three round trips. */
    disconnect: (signal?: AbortSignal) => disconnectContainer(running, signal),
    /** Lists the processes other than init. */
    processes: () => listProcesses(running, 'args'),
    /**
     * Lists how its files differ from its image's, as the engine sees it. Slow, and misses a file whose size
     * and times were restored.
     */
    changes: () => containers.changes(id),
    /**
     * When it was created: epoch milliseconds by the engine's clock, like the times of its files. One round
     * trip.
     */
    madeAt: async (signal?: AbortSignal) => (await containers.state(id, signal)).createdAt,
    /** Lists everything in its own layer, if this process can read it; see layer-paths.ts. One round trip. */
    layerPaths: (request: LayerRequest) => layerPaths(running, request),
    /**
     * Whether nothing was created, changed or deleted at or below a path; undefined if its layer cannot be
     * read.
     */
    async isUntouched(path: string, signal?: AbortSignal): Promise<boolean | undefined> {
      const touched = await layerPaths(running, { except: [], below: path, onlyFirst: true, signal });
      return touched && touched.length === 0;
    },
    /**
     * What exists at an absolute path: links on the way are followed, a link at the path is not. One round
     * trip that reads no content.
     */
    kindOf: (path: string, signal?: AbortSignal) => kindOfPath(running, path, signal),
    /** Bytes that it takes on the engine's disk: see disk-use.ts. */
    diskUse: (signal?: AbortSignal) => diskUse(running, signal),
    /** Whether its disk use is measured exactly, and not taken from the engine's own count. */
    seesDisk: (signal?: AbortSignal) => isDiskVisible(running, signal),
    /** Bytes of an image of it, in which sparse files have their full length. */
    imageBytes: (signal?: AbortSignal) => imageBytes(running, signal),
    /** From now on, what it takes of the disk now does not count towards its limit. */
    async forgiveDisk(signal?: AbortSignal): Promise<void> {
      if (spec.diskBytes !== undefined) running.diskBytes = spec.diskBytes + (await diskUse(running, signal));
    },
    /** Does work by which the engine writes into it, with its disk watched: see disk-watch.ts. */
    fill: <T>(limits: CopyLimits, work: (signal?: AbortSignal) => Promise<T>) =>
      whileFilling(running, limits, work),
    /** Ends its processes when it takes more of the disk than `limit` bytes. */
    watchDisk: (limit: number) => watchDisk(running, limit),
    /**
     * Reads a file or folder while it streams, and keeps its archive if `copy` is given. Throws
     * `ENGINE_NOT_FOUND`; `ENGINE_TOO_LARGE` if its files have more than `maxBytes`.
     */
    archive: (
      path: string,
      signal?: AbortSignal,
      maxBytes?: number,
      copy?: ArchiveCopy,
    ): AsyncIterable<ArchivedEntry> => readArchive(running, path, signal, maxBytes, copy),
    /**
     * Copies chosen files at a path to the same path of another container of this engine. Two round trips;
     * see carry.ts.
     */
    carryTo: (other: Filled, path: string, request: CarryRequest) =>
      other.fill(request, (signal = request.signal) =>
        carryBetween(running, other.id, path, { ...request, signal }),
      ),
    /** The engine's archive of a path, for {@link unpack}. Throws `ENGINE_NOT_FOUND`. One round trip. */
    pack: (path: string, limits: CopyLimits) => openArchive({ port, id }, path, limits),
    /** Unpacks what {@link pack} gave for the same path of a container of any engine. One round trip. */
    unpack: (path: string, archive: Readable, signal?: AbortSignal) =>
      unpackArchive(port, { id, path }, archive, signal),
    /**
     * Creates an image of its files; resolves with the image's id. Throws `IMAGE_TOO_LARGE` if they are
     * longer than `maxBytes`.
     */
    commit: (request: CommitImage, signal?: AbortSignal) => commitContainer(running, request, signal),
    /** Removes it. Can be called again. */
    remove,
    /** The same, but if the engine fails, it is removed when the engine is disposed. */
    [Symbol.asyncDispose]: () => remove().catch(ignoreRemovalFailure),
  };
}

export type Container = ReturnType<typeof containerOf>;

/** A container that another one's files are copied into. */
interface Filled {
  id: string;
  fill(limits: CopyLimits, work: (signal?: AbortSignal) => Promise<Carried>): Promise<Carried>;
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
  throw infrastructureError(
    'ENGINE_CANNOT_ENFORCE',
    `The engine left a container on its network (${left.join(', ')}).`,
  );
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
  return inputError(
    'IMAGE_TOO_LARGE',
    `its files have ${gibibytes} GiB, and an image cannot keep the holes of sparse files`,
    { hint: 'Make sparse files shorter, or make them where they are needed.' },
  );
}
