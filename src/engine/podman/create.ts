import { remembered } from '../../base/deadline.ts';
import { storedFiles } from '../archive/stored-file.ts';
import type { DockerClient } from '../docker/client.ts';
import type { ContainerRequest, FolderMount, MemoryFolder, Mount } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { engineFailure } from '../port/failure.ts';

/** How the service of Podman runs. Filled in before the first request about a container. */
export interface PodmanService {
  isRoot: boolean;
  /** The runtime of all its containers. */
  runtime: string;
}

/**
 * Creates a container with Podman's own API. Podman's Docker API ignores read-only paths and the content of a
 * filter, and adds writable folders to a read-only root.
 */
export async function createContainer(
  client: DockerClient,
  { filterPath, service }: { filterPath: FilterPath; service: PodmanService },
  request: ContainerRequest,
  signal?: AbortSignal,
): Promise<{ id: string; warnings: string[] }> {
  const { runtime = service.runtime } = request;
  if (runtime !== service.runtime) {
    // Podman would use its own runtime, and not report it.
    const message = `This Podman runs all containers with ${service.runtime}, not with ${runtime}.`;
    throw engineFailure('refused', message, undefined);
  }
  const filter = request.filter === undefined ? undefined : await filterPath(request.filter, request);
  const created = await client.ask<{ Id: string; Warnings?: string[] | null }>(
    'creating a container',
    'POST /libpod/containers/create',
    { body: { ...specOf(request, service), seccomp_profile_path: filter }, signal },
  );
  return { id: created.Id, warnings: created.Warnings ?? [] };
}

/** Podman's `SpecGenerator`. */
function specOf(request: ContainerRequest, service: PodmanService): Record<string, unknown> {
  const { mounts = [], memoryFolders = [], readOnlyPaths = [], nofile, processesOf } = request;
  return {
    name: request.name,
    image: request.imageId,
    entrypoint: request.command,
    command: [],
    env: request.env,
    // Podman adds these variables by itself; no other engine does.
    unsetenv: ['container', 'TERM'],
    stdin: request.stdin,
    work_dir: request.workingDir,
    create_working_dir: request.workingDir !== undefined,
    user: request.user,
    labels: request.labels,
    hostname: request.hostName,
    ...networkOf(request, sysctlOf(service)),
    ...(processesOf !== undefined && { pidns: { nsmode: 'container', value: processesOf } }),
    // Otherwise an entrypoint with systemd's name gets writable control groups, among other things.
    systemd: 'false',
    // The first process must be the one that is named here, whatever the configuration of Podman says.
    init: false,
    // The init of an image may be waiting for a signal: removal sends SIGKILL at once.
    stop_timeout: 0,
    healthconfig: noHealthCheck,
    log_configuration: { driver: 'none' },
    resource_limits: limitsOf(request),
    ...(request.quotaBytes !== undefined && { storage_opts: { size: String(request.quotaBytes) } }),
    r_limits: [limit('core', 0), ...(nofile === undefined ? [] : [limit('nofile', nofile)])],
    cap_drop: ['ALL'],
    cap_add: request.capabilities,
    no_new_privileges: true,
    read_only_filesystem: request.readOnlyRoot,
    // Otherwise a read-only root has writable folders in memory.
    read_write_tmpfs: false,
    image_volume_mode: 'anonymous',
    volumes: mounts.flatMap((mount) => ('volume' in mount ? [volumeOf(mount)] : [])),
    mounts: [
      ...mounts.flatMap((mount) => ('folder' in mount ? [folderMount(mount)] : [])),
      ...memoryFolders.map(memoryMount),
      ...(readOnlyPaths.includes('/dev') ? readOnlyDevices : []),
    ],
  };
}

/**
 * Otherwise an image's health check would run in the sandbox. If these times, in nanoseconds, are too short,
 * Podman 5 refuses to change a limit of the container, even if it has no health check.
 */
const noHealthCheck = { Test: ['NONE'], Interval: 30e9, Timeout: 30e9, Retries: 3 };

/**
 * Podman always protects the paths in `/proc` and `/sys` that engines protect by default. If a request mounts
 * `/dev`, Podman makes none of its own mounts below it except `/dev/shm`. So they are listed here, as Docker
 * makes them.
 */
const readOnlyDevices = [
  {
    destination: '/dev',
    type: 'tmpfs',
    source: 'tmpfs',
    options: ['ro', 'nosuid', 'noexec', 'strictatime', 'mode=755', 'size=65536k'],
  },
  {
    destination: '/dev/pts',
    type: 'devpts',
    source: 'devpts',
    options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620', 'gid=5'],
  },
  {
    destination: '/dev/mqueue',
    type: 'mqueue',
    source: 'mqueue',
    options: ['nosuid', 'noexec', 'nodev'],
  },
];

/**
 * As Docker sets them, so that a service without capabilities may listen on any port. The kernel accepts only
 * groups that the user namespace has. Without root there are few, so that Docker leaves the range out.
 */
function sysctlOf({ isRoot }: PodmanService): Record<string, string> {
  return {
    'net.ipv4.ip_unprivileged_port_start': '0',
    ...(isRoot && { 'net.ipv4.ping_group_range': '0 2147483647' }),
  };
}

function networkOf(
  { network, hosts }: ContainerRequest,
  sysctl: Record<string, string>,
): Record<string, unknown> {
  // A hosts file that Podman makes would contain the machine's own names.
  if (network === 'none') return { netns: { nsmode: 'none' }, use_image_hosts: true, sysctl };
  if (network !== 'open') {
    return { netns: { nsmode: 'container', value: network.sharedWith }, use_image_hosts: true };
  }
  const hostadd = Object.entries(hosts ?? {}).map(([name, address]) => `${name}:${address}`);
  return { netns: { nsmode: 'bridge' }, hostadd, sysctl };
}

function volumeOf({ volume, path, readOnly }: Mount) {
  // Without nocopy, Podman fills an empty volume with what the image has at that path.
  return { Name: volume, Dest: path, Options: [readOnly ? 'ro' : 'rw', 'nocopy'] };
}

function folderMount({ folder, path }: FolderMount) {
  return { destination: path, type: 'bind', source: folder, options: ['ro', 'nosuid', 'nodev', 'noexec'] };
}

function memoryMount({ path, maxBytes }: MemoryFolder) {
  const options = ['rw', 'nosuid', 'nodev', 'mode=1777', `size=${maxBytes}`, 'notmpcopyup'];
  return { destination: path, type: 'tmpfs', source: 'tmpfs', options };
}

/** Microseconds. */
const cpuPeriod = 100_000;

/** As the OCI runtime specification writes them. */
function limitsOf({ memoryBytes, pids, cpus }: ContainerRequest) {
  return {
    // The swap limit includes memory: equal means no swap.
    memory: { limit: memoryBytes, swap: memoryBytes },
    pids: { limit: pids },
    ...(cpus !== undefined && { cpu: { quota: Math.round(cpus * cpuPeriod), period: cpuPeriod } }),
  };
}

function limit(type: string, value: number) {
  return { type, soft: value, hard: value };
}

/** Podman reports some ids without the prefix `sha256:`. */
export function imageId(id: string): string {
  return id === '' || id.startsWith('sha256:') ? id : `sha256:${id}`;
}

/** Where Podman keeps images that it built or imported, and where its Docker API looks for short names. */
const registries = /^(?:localhost|docker\.io(?:\/library)?)\//;

/** The name that the image has on other engines. */
export function imageName(name: string): string {
  return name.replace(registries, '');
}

/** Machines by Go's names, where the kernel's differ. */
const machines: Readonly<Record<string, string>> = { amd64: 'x86_64', arm64: 'aarch64', arm: 'armv7l' };

/** The kernel's name of a machine, as other engines report it. Podman reports Go's. */
export function machineName(name: string): string {
  return machines[name] ?? name;
}

/** The volume that holds the filters of system calls. It stays, as the base image does. */
const volume = 'offsite-filters';

/**
 * The path of a file with a filter on the engine's machine. `helper`: any image will do, and a sweep needs
 * the labels.
 */
type FilterPath = (filter: string, helper: Pick<ContainerRequest, 'imageId' | 'labels'>) => Promise<string>;

/**
 * Podman reads a filter of system calls from a file on its own machine, and its API takes no content. So each
 * filter is a file in a volume.
 */
export function filterFiles(client: DockerClient, port: () => EnginePort): FilterPath {
  const once = remembered<string>();
  return (filter, helper) => once(filter, () => storeFilter(client, port(), filter, helper));
}

async function storeFilter(
  client: DockerClient,
  port: EnginePort,
  filter: string,
  helper: Pick<ContainerRequest, 'imageId' | 'labels'>,
): Promise<string> {
  await port.createVolume(volume, {});
  const file = { content: Buffer.from(filter), ending: '.json', mode: 0o644 };
  const [stored] = await storedFiles(port, volume, [file], helper);
  const route = `GET /libpod/volumes/${volume}/json` as const;
  const { Mountpoint } = await client.ask<{ Mountpoint: string }>('looking at a volume', route);
  return `${Mountpoint}/${stored?.name}`;
}
