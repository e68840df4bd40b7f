import type { Capabilities } from '../capabilities.ts';
import { extraHosts } from './hosts-file.ts';
import { securityOptions } from './seccomp/filter.ts';

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
  /** Open files of one process; the engine's default when left out. It cannot be above what the engine itself may open. */
  nofile?: number;
  /** What all its files may take; looked at once a second while a command runs. Unlimited when left out. */
  diskBytes?: number | undefined;
  /** Largest file one process may write. */
  fsizeBytes?: number | undefined;
  /** Environment of everything that is run in it. It never becomes part of the container or of an image made of it. */
  env?: Readonly<Record<string, string>>;
  /** Absolute; made if missing. */
  workingDir: string;
  /** Name or id; the image's own when left out. */
  user?: string | undefined;
  /**
   * What runs in place of the idle init, and as long as the container does. Its stdin is open until the one who attached leaves. Its files
   * cannot be written.
   */
  program?: readonly string[] | undefined;
  /**
   * Whether the engine must hold it to our filter of system calls, as it must when left out, or may lack what that takes; then it
   * has whatever the engine gives it.
   */
  filter?: 'required' | 'if-available' | undefined;
  /** An OCI runtime the engine knows, such as `runsc`; its default when left out. */
  runtime?: string | undefined;
}

/** What package managers, chown and su need, and no more. */
const COMPATIBLE_CAPABILITIES = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID'];

/** The engine's `HostConfig` for a spec. */
export function hostConfig(spec: ContainerSpec, capabilities: Capabilities): Record<string, unknown> {
  return {
    NetworkMode: networkMode(spec.network),
    ...(spec.network === 'open' && { ExtraHosts: extraHosts }),
    // Swap counts from memory up: equal means none. Left out, the engine would give as much again.
    Memory: spec.memoryBytes,
    MemorySwap: spec.memoryBytes,
    NanoCpus: Math.round(spec.cpus * 1e9),
    PidsLimit: spec.pids,
    Ulimits: [
      ...(spec.nofile === undefined ? [] : [limit('nofile', spec.nofile)]),
      limit('core', 0),
      ...(spec.fsizeBytes === undefined ? [] : [limit('fsize', spec.fsizeBytes)]),
    ],
    CapDrop: ['ALL'],
    CapAdd: spec.security === 'compatible' ? COMPATIBLE_CAPABILITIES : [],
    SecurityOpt: securityOptions(spec.program === undefined ? 'sandbox' : 'program', capabilities),
    // Only init writes there, and it writes nothing.
    LogConfig: { Type: 'none' },
    ReadonlyRootfs: spec.program !== undefined,
    ReadonlyPaths: readonlyPaths,
    // Never AutoRemove: how it ended must be readable until we remove it.
    AutoRemove: false,
    ...(spec.runtime === undefined ? {} : { Runtime: spec.runtime }),
  };
}

/**
 * What no process may change, root or not: the engine's own list, which this replaces, and the devices. What a step of
 * verify sends to `/dev/null`, or reads from it, is then what it is everywhere. The folders in it that are mounts of their
 * own (`/dev/shm`, `/dev/pts`, `/dev/mqueue`) stay as they are.
 */
const readonlyPaths = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger', '/dev'];

function networkMode(network: ContainerSpec['network']): string {
  if (network === 'none') return 'none';
  if (network === 'open') return 'bridge';
  return `container:${network.sharedWith}`;
}

function limit(name: string, value: number) {
  return { Name: name, Soft: value, Hard: value };
}
