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
   * containers start with copies, which are as old as the container, or if this is unknown.
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
  /** Whether a container can have a filter of system calls of its own. */
  takesFilters: boolean;
  /** Whether it records when an image last got a name, so that the least recently used ones are known. */
  recordsNaming: boolean;
  /** Whether it reports what happened in a container: kills for lack of memory, starts of commands. */
  reportsEvents: boolean;
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
