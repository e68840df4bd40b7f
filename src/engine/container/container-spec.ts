import type { Capabilities } from '../port/capabilities.ts';
import type { ContainerRequest } from '../port/containers.ts';
import { hostName, ownAddress } from './hosts-file.ts';
import { INIT_COMMAND } from './init-command.ts';
import { filterFor } from './seccomp/filter.ts';

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

/** What package managers, chown and su need, and no more. */
const compatibleCapabilities = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID'];

/** What the engine is asked for. */
export function requestOf(
  spec: ContainerSpec,
  capabilities: Capabilities,
): Omit<ContainerRequest, 'name' | 'labels'> {
  const { network, program } = spec;
  return {
    imageId: spec.imageId,
    command: program ?? INIT_COMMAND,
    stdin: program !== undefined,
    workingDir: spec.workingDir,
    user: spec.user,
    network,
    // Who shares a network shares its name.
    ...(typeof network === 'string' && { hostName }),
    ...(network === 'open' && { hosts: ownAddress }),
    memoryBytes: spec.memoryBytes,
    cpus: spec.cpus,
    pids: spec.pids,
    nofile: spec.nofile,
    capabilities: spec.security === 'compatible' ? compatibleCapabilities : [],
    filter: filterFor(program === undefined ? 'sandbox' : 'program', capabilities),
    readOnlyRoot: program !== undefined,
    readOnlyPaths,
    runtime: spec.runtime,
  };
}

/**
 * What no process may change, root or not: what engines protect by themselves, and the devices. So what a
 * step of verify sends to `/dev/null`, or reads from it, is what it is everywhere. The folders in it that are
 * mounts of their own (`/dev/shm`, `/dev/pts`, `/dev/mqueue`) stay as they are.
 */
const readOnlyPaths = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger', '/dev'];
