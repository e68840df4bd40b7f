/** What an engine is and can do, as it says itself. */
export interface Capabilities {
  apiVersion: string;
  serverVersion: string;
  /** `linux` or `windows`: of the containers, not of the machine. */
  os: string;
  /** As the engine names it: `x86_64`, `aarch64`. */
  arch: string;
  cpus: number;
  memoryBytes: number;
  /** Of the machine that containers run on. */
  kernel: string;
  storageDriver: string;
  /**
   * Whether a file of an image has the same times in every container until it is changed there. False where
   * containers start with copies, which are as old as the container, and where we do not know.
   */
  keepsImageTimes: boolean;
  /**
   * Whether the engine itself can hold a container to an amount of disk. `unknown` for overlay2 on xfs, which
   * can where the disk is mounted with project quotas, and does not say whether it is. Offsite watches the
   * disk of sandboxes either way.
   */
  diskQuota: 'yes' | 'no' | 'unknown';
  /** Where the engine keeps images and containers, on its own machine. */
  rootFolder: string;
  /**
   * Milliseconds by which the engine's clock was ahead of ours when it was asked, half a round trip more or
   * less.
   */
  clockAheadMs: number;
  cgroupVersion: '1' | '2';
  /** OCI runtimes by name. */
  runtimes: string[];
  /** The one of those that a container gets that names none. */
  defaultRuntime: string;
  /**
   * Whether a request can carry a filter of system calls. Podman reads one from a file on its own machine
   * only.
   */
  takesFilters: boolean;
  security: { seccomp: boolean; userns: boolean; rootless: boolean; apparmor: boolean; selinux: boolean };
  limits: { memory: boolean; swap: boolean; pids: boolean; cpu: boolean };
  /** The engine's own warnings about itself. */
  warnings: string[];
}
