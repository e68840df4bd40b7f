import type { Capabilities } from '../port/capabilities.ts';
import type { ContainerRequest } from '../port/containers.ts';
import type { ContainerSpec } from './container-spec.ts';
import { hostName, ownAddress } from './hosts-file.ts';
import { INIT_COMMAND } from './init-command.ts';
import { filterFor } from './seccomp/filter.ts';

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
