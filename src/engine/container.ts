import type { Duplex } from 'node:stream';
import { type CopyLimits, copyBetween } from './archive/copy.ts';
import type { ArchivedEntry, NewEntry } from './archive/entries.ts';
import { kindOfPath, type PathKind } from './archive/path-kind.ts';
import { putEntries } from './archive/put.ts';
import { readArchive } from './archive/read.ts';
import { isUntouched, type LayerRequest, layerPaths } from './changes/layer-paths.ts';
import { commitContainer } from './container/commit.ts';
import type { ContainerSpec } from './container/container-spec.ts';
import { disconnectContainer } from './container/disconnect.ts';
import { type KillAllResult, killAll } from './container/kill-all.ts';
import { type ContainerProcess, listProcesses } from './container/processes.ts';
import { removeContainer } from './container/remove.ts';
import type { RunningContainer } from './container/running-container.ts';
import type { ExecRequest, ExecResult } from './exec/exec-request.ts';
import { execute } from './exec/execute.ts';
import type { AttachRequest, CommitImage, FilesystemChange } from './port/containers.ts';
import type { EnginePort } from './port/engine-port.ts';
import { runScript } from './script/run-script.ts';
import type { ScriptRequest, ScriptResult } from './script/script-request.ts';

/**
 * A sealed place to run commands in. It runs nothing but an idle init of ours; commands are added by `exec`
 * and `runScript`. Disposal removes it, whatever runs in it. All methods throw infrastructure errors when the
 * engine fails.
 */
export interface Container extends AsyncDisposable {
  readonly id: string;
  /** Starts init. One round trip, by far the dearest. */
  start(signal?: AbortSignal): Promise<void>;
  /**
   * Writes files below `at` (default `/`), making missing folders. Works before `start` as well. One round
   * trip.
   */
  put(entries: Iterable<NewEntry>, at?: string, signal?: AbortSignal): Promise<void>;
  /** The standard streams of its `program`, best taken before `start`. One round trip. */
  attach(request: AttachRequest): Promise<Duplex>;
  /** Runs one command. Three round trips. */
  exec(request: ExecRequest): Promise<ExecResult>;
  /** Runs a bash script, each command of it a step. Two round trips. */
  runScript(request: ScriptRequest): Promise<ScriptResult>;
  /**
   * Ends every process but init and makes sure that none is left; see kill-all.ts for what `restarted` means.
   */
  killAll(signal?: AbortSignal): Promise<KillAllResult>;
  /** Takes it off its network for good. Three round trips. */
  disconnect(signal?: AbortSignal): Promise<void>;
  /** What runs beside init. */
  processes(): Promise<ContainerProcess[]>;
  /**
   * How its files differ from its image's, as the engine sees it: blind to a file whose size and times were
   * put back, and slow.
   */
  changes(): AsyncIterable<FilesystemChange>;
  /** Epoch milliseconds of the engine's clock, by which its files' times go as well. One round trip. */
  madeAt(signal?: AbortSignal): Promise<number>;
  /**
   * Everything that its own layer holds, where this process can read it; see layer-paths.ts. One round trip.
   */
  layerPaths(request: LayerRequest): Promise<string[] | undefined>;
  /**
   * Whether nothing at a path, or in the folder there, was made, changed or deleted; undefined where its
   * layer cannot be read.
   */
  isUntouched(path: string, signal?: AbortSignal): Promise<boolean | undefined>;
  /**
   * What lies at an absolute path: links on the way are followed, a link there is not. One round trip, which
   * reads nothing.
   */
  kindOf(path: string, signal?: AbortSignal): Promise<PathKind>;
  /** Bytes of all files in its own layer. */
  writtenBytes(signal?: AbortSignal): Promise<number>;
  /**
   * Reads a file or folder as it is streamed. Throws `ENGINE_NOT_FOUND`; `ENGINE_TOO_LARGE` if its files have more
   * than `maxBytes`.
   */
  archive(path: string, signal?: AbortSignal, maxBytes?: number): AsyncIterable<ArchivedEntry>;
  /**
   * Copies a folder to the same place in another container of this engine, as it is. Two round trips; see
   * copy.ts.
   */
  copyTo(other: Container, path: string, limits: CopyLimits): Promise<void>;
  /** Makes an image of its files; resolves with the image's id. */
  commit(request: CommitImage, signal?: AbortSignal): Promise<string>;
  /** Removes it. Doing so again is fine. */
  remove(): Promise<void>;
}

/** The container `id`, which was created from `spec` on a machine of that architecture. */
export function containerOf(port: EnginePort, id: string, spec: ContainerSpec, arch: string): Container {
  const running: RunningContainer = {
    port,
    id,
    env: spec.env ?? {},
    user: spec.user,
    arch,
    pids: spec.pids,
    diskBytes: spec.diskBytes,
    activeExecs: new Set(),
    execCount: 0,
    hostFacts: undefined,
    oomKills: 0,
  };
  const { containers } = port;
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
    start: (signal) => containers.start(id, signal),
    put: (entries, at = '/', signal) => putEntries(running, entries, at, signal),
    attach: (request) => containers.attach(id, request),
    exec: (request) => execute(running, request),
    runScript: (request) => runScript(running, request),
    killAll: (signal) => killAll(running, signal),
    disconnect: (signal) => disconnectContainer(running, signal),
    processes: () => listProcesses(running, 'args'),
    changes: () => containers.changes(id),
    writtenBytes: (signal) => containers.writtenBytes(id, signal),
    madeAt: async (signal) => (await containers.state(id, signal)).createdAt,
    layerPaths: (request) => layerPaths(running, request),
    isUntouched: (path, signal) => isUntouched(running, path, signal),
    kindOf: (path, signal) => kindOfPath(running, path, signal),
    archive: (path, signal, maxBytes) => readArchive(running, path, signal, maxBytes),
    copyTo: (other, path, limits) => copyBetween(port, id, other.id, path, limits),
    commit: (request, signal) => commitContainer(running, request, signal),
    remove,
    [Symbol.asyncDispose]: remove,
  };
}
