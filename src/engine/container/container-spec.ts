import type { Capabilities } from '../port/capabilities.ts';
import type { ContainerRequest } from '../port/containers.ts';
import { hostName, ownAddress } from './hosts-file.ts';
import { INIT_COMMAND } from './init-command.ts';
import { filterFor } from './seccomp/filter.ts';

/** What a container is made of, and its limits. */
export interface ContainerSpec {
  /** The id, not a name: names move. */
  imageId: string;
  /** The caller's labels; `engine/` adds its own. */
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
  /** Open files of one process; default: the engine's. It cannot exceed what the engine itself may open. */
  nofile?: number;
  /** Bytes that all its files may take; checked once a second while a command runs. Default: unlimited. */
  diskBytes?: number | undefined;
  /**
   * The environment of every command in it. It never becomes part of the container or of an image made from
   * it.
   */
  env?: Readonly<Record<string, string>>;
  /** Absolute; created if missing. */
  workingDir: string;
  /** Name or id; default: the image's own. */
  user?: string | undefined;
  /**
   * A program that runs instead of the idle init. The container ends with it. Its stdin stays open until the
   * attached client leaves. The container's files are read-only.
   */
  program?: readonly string[] | undefined;
  /**
   * `required` (the default): the engine must enforce Offsite's filter of system calls. `if-available`: if
   * the engine cannot, the container gets whatever filter the engine gives it.
   */
  filter?: 'required' | 'if-available' | undefined;
  /** An OCI runtime the engine knows, such as `runsc`; default: the engine's. */
  runtime?: string | undefined;
}

/** What package managers, chown and su need, and no more. */
const compatibleCapabilities = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID'];

/** The request that is sent to the engine. */
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
    // A container that shares a network also shares its host name.
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
 * Paths that no process may change, root or not: those that engines protect by default, and the devices. So
 * `/dev/null` works as usual when a step of verify writes to it or reads from it. Folders in `/dev` that are
 * separate mounts (`/dev/shm`, `/dev/pts`, `/dev/mqueue`) are not affected.
 */
const readOnlyPaths = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger', '/dev'];
