import type { Clock } from '../../base/clock.ts';
import type { ContainerPort } from './containers.ts';
import type { ImagePort } from './images.ts';

/**
 * Everything that Offsite needs from a container engine. `docker/` and `podman/` implement it. The
 * checks in `conformance/` say what an implementation must do. Everything else in `engine/` builds on it.
 *
 * Each method is one request to the engine with its own deadline, unless it says otherwise. Each throws an
 * error of one of the kinds in failure.ts, or the reason of the caller's signal.
 */
export interface EnginePort {
  /** Measures the deadlines of all requests. */
  readonly clock: Clock;
  /** Requests sent so far. One round trip is the unit of cost of everything here. */
  readonly roundTrips: number;
  /** What the engine is and can do. */
  facts(signal?: AbortSignal): Promise<Capabilities>;
  readonly images: ImagePort;
  readonly containers: ContainerPort;
  /** The objects of a kind that carry every one of these labels: `key` or `key=value`. */
  list(kind: ObjectKind, labels: readonly string[], signal?: AbortSignal): Promise<ListedObject[]>;
  /** Makes an empty volume. Does nothing if there is one of that name. */
  createVolume(name: string, labels: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<void>;
  /**
   * Removes an object; does nothing if it does not exist. A container is removed even if it runs, with its
   * anonymous volumes. An image is removed by name or id, and its parents stay. Throws a `conflict` while
   * something else uses the object, or another request is removing it.
   */
  remove(kind: ObjectKind | 'image', id: string, signal?: AbortSignal): Promise<void>;
}

/** An engine, and the Offsite process that uses it. */
export interface UsedEngine {
  port: EnginePort;
  /** The name of the process, with which everything that it creates is labeled. */
  instance: string;
  capabilities: Capabilities;
}

/** An engine that this process is connected to. */
export interface OpenEngine {
  port: EnginePort;
  /** Call this when the Offsite process starts to end: from then on, a silent engine soon counts as gone. */
  beginEnding(): void;
  /** Closes idle connections. */
  close(): void;
}

export type ObjectKind = 'container' | 'network' | 'volume';

/** Something that an engine keeps and that carries labels. */
export interface ListedObject {
  kind: ObjectKind;
  /** For a volume, its name. */
  id: string;
  name: string;
  labels: Readonly<Record<string, string>>;
  /** Epoch milliseconds of the engine's clock. */
  createdAt: number;
  /** A container's: `created`, `running`, `exited`, ... */
  state?: string;
  /** A container's: the image it is made of. */
  imageId?: string;
}

/** What an engine is and can do, as it reports itself. */
export interface Capabilities {
  /** Whose engine it is. */
  product: 'Docker' | 'Podman';
  apiVersion: string;
  serverVersion: string;
  /** `linux` or `windows`: the system of the containers, not of the machine. */
  os: string;
  /** As the kernel names it: `x86_64`, `aarch64`. */
  arch: string;
  cpus: number;
  memoryBytes: number;
  /** The kernel version of the machine that containers run on. */
  kernel: string;
  storageDriver: string;
  /**
   * Who keeps the images. With containerd, the engine does not say where a container's own files are, nor
   * when an image is given a name that it already has.
   */
  imageStore: 'engine' | 'containerd';
  /**
   * Whether a file of an image has the same times in every container until it is changed there. False if
   * containers start with copies, which are as old as the container.
   */
  keepsImageTimes: boolean;
  /**
   * Whether the engine itself can limit the disk usage of a container. `unknown` for overlay2 on xfs: it can
   * if the disk is mounted with project quotas, but does not report that. Offsite watches the disk usage of
   * sandboxes in any case.
   */
  diskQuota: 'yes' | 'no' | 'unknown';
  /** The folder on the engine's machine that holds images and containers. */
  rootFolder: string;
  /**
   * Milliseconds by which the engine's clock was ahead of ours when it answered, accurate to half a round
   * trip.
   */
  clockAheadMs: number;
  cgroupVersion: '1' | '2';
  /** OCI runtimes by name. */
  runtimes: string[];
  /** The runtime of a container that names none. */
  defaultRuntime: string;
  security: { seccomp: boolean; userns: boolean; rootless: boolean; apparmor: boolean; selinux: boolean };
  limits: { memory: boolean; swap: boolean; pids: boolean; cpu: boolean };
  /** The engine's own warnings about itself. */
  warnings: string[];
}

/**
 * Runtimes that run a container's processes directly on the machine's kernel. Others, such as gVisor's, may
 * not.
 */
export const plainRuntimes: readonly string[] = ['runc', 'io.containerd.runc.v2', 'crun'];

/**
 * A plain runtime of an engine whose default is not plain; undefined if it has none, or its default is.
 * Containers that run only Offsite's own programs take it: their limits leave no room for another kernel.
 */
export function otherPlainRuntime({
  runtimes,
  defaultRuntime,
}: Pick<Capabilities, 'runtimes' | 'defaultRuntime'>): string | undefined {
  if (plainRuntimes.includes(defaultRuntime)) return undefined;
  return plainRuntimes.find((name) => runtimes.includes(name));
}
