import type { ContainerRequest } from '../port/containers.ts';
import { type Capabilities, otherPlainRuntime, plainRuntimes } from '../port/engine-port.ts';
import type { ContainerSpec } from './container-spec.ts';
import { hostName, ownAddress } from './hosts-file.ts';
import { filterFor } from './seccomp/filter.ts';

/** What package managers, chown and su need, and no more. */
const compatibleCapabilities = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID'];

/** The request that is sent to the engine. */
export function requestOf(
  spec: ContainerSpec,
  capabilities: Capabilities,
  { protectsPaths, init }: { protectsPaths: boolean; init: readonly string[] },
): Omit<ContainerRequest, 'name' | 'labels'> {
  const { network, program, service, networkAdmin } = spec;
  const runtime = spec.runtime ?? (program === undefined ? undefined : otherPlainRuntime(capabilities));
  const networkByEngine = !plainRuntimes.includes(runtime ?? capabilities.defaultRuntime);
  // An engine that sets up a network writes the hosts file too.
  const hostsByEngine = network === 'open' || (network === 'none' && networkByEngine);
  return {
    imageId: spec.imageId,
    command: program ?? service?.command ?? init,
    // Init reads from it what to start.
    stdin: program !== undefined || init.length > 0,
    workingDir: spec.workingDir,
    user: userOfInit(spec),
    network,
    networkByEngine,
    // A container that shares a network also shares its host name.
    hostName: spec.hostName ?? hostName,
    ...(hostsByEngine && { hosts: { ...ownAddress, ...spec.hosts } }),
    processesOf: networkAdmin?.processesOf,
    ...(service && { env: service.env, memoryFolders: service.memoryFolders }),
    memoryBytes: spec.memoryBytes,
    cpus: spec.cpus,
    pids: spec.pids,
    nofile: spec.nofile,
    capabilities: capabilitiesOf(spec),
    // A program that sets up a network needs netlink sockets, which the filter for programs refuses.
    filter: filterFor(program === undefined || networkAdmin ? 'sandbox' : 'program', capabilities),
    readOnlyRoot: program !== undefined,
    readOnlyPaths,
    devicesByMount: !protectsPaths,
    mounts: spec.mounts,
    runtime,
  };
}

function capabilitiesOf({ security, networkAdmin }: ContainerSpec): readonly string[] {
  if (networkAdmin) return ['NET_ADMIN'];
  return security === 'compatible' ? compatibleCapabilities : [];
}

/**
 * In a container whose init is not root, no command gets capabilities, not even a command of root. So if
 * commands may have capabilities, init is root, and each command names its user.
 */
export function userOfInit({ user, security, program, service }: ContainerSpec): string | undefined {
  const isIdle = program === undefined && service === undefined;
  return security === 'compatible' && isIdle && user !== undefined ? '0:0' : user;
}

/**
 * Paths that no process may change, root or not: those that engines protect by default, and the devices. So
 * `/dev/null` works as usual when a step of verify writes to it or reads from it. Folders in `/dev` that are
 * separate mounts (`/dev/shm`, `/dev/pts`, `/dev/mqueue`) are not affected.
 */
const readOnlyPaths = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger', '/dev'];
