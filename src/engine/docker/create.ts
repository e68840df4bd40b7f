import type { ContainerRequest, FolderMount, MemoryFolder, Mount } from '../port/containers.ts';
import type { DockerClient } from './client.ts';

export async function createContainer(
  client: DockerClient,
  request: ContainerRequest,
  signal?: AbortSignal,
): Promise<{ id: string; warnings: string[] }> {
  const { name, network, hostName, stdin } = request;
  const created = await client.ask<{ Id: string; Warnings?: string[] | null }>(
    'creating a container',
    `POST /containers/create?${name === undefined ? '' : `name=${name}`}`,
    {
      signal,
      body: {
        Image: request.imageId,
        Entrypoint: request.command,
        Cmd: [],
        ...(request.env && { Env: Object.entries(request.env).map(([name, value]) => `${name}=${value}`) }),
        ...(stdin && { OpenStdin: true, StdinOnce: true, AttachStdin: true }),
        ...(request.workingDir !== undefined && { WorkingDir: request.workingDir }),
        ...(request.user !== undefined && { User: request.user }),
        // Docker refuses a host name if the container shares another one's network, and so its host name.
        ...(typeof network === 'string' && hostName !== undefined && { Hostname: hostName }),
        // Uses the runtime's empty namespace, which has only a loopback. With `NetworkMode: none` alone the
        // engine sets up a network without members, which doubles the time of a start (180 instead of 85 ms).
        NetworkDisabled: network === 'none' && !request.networkByEngine,
        Labels: request.labels,
        // Init ignores SIGTERM: an engine that is stopping need not wait its usual ten seconds.
        StopTimeout: 1,
        // Otherwise an image's health check would run in the sandbox.
        Healthcheck: { Test: ['NONE'] },
        HostConfig: hostConfig(request),
      },
    },
  );
  return { id: created.Id, warnings: created.Warnings ?? [] };
}

function hostConfig(request: ContainerRequest): Record<string, unknown> {
  const { hosts, cpus, nofile, filter, readOnlyPaths, runtime, processesOf } = request;
  const { devicesByMount = false } = request;
  const { mounts = [], memoryFolders = [] } = request;
  return {
    NetworkMode: networkMode(request.network),
    ...(hosts && { ExtraHosts: Object.entries(hosts).map(([name, address]) => `${name}:${address}`) }),
    ...(processesOf !== undefined && { PidMode: `container:${processesOf}` }),
    // The swap limit includes memory: equal means no swap. If left out, the engine adds as much swap as
    // memory.
    Memory: request.memoryBytes,
    MemorySwap: request.memoryBytes,
    ...(cpus !== undefined && { NanoCpus: Math.round(cpus * 1e9) }),
    PidsLimit: request.pids,
    ...(request.quotaBytes !== undefined && { StorageOpt: { size: String(request.quotaBytes) } }),
    // From API 1.56 on. Where such a dockerd starts containerd itself, commands otherwise have its umask, 0.
    Umask: 0o022,
    Ulimits: [...(nofile === undefined ? [] : [limit('nofile', nofile)]), limit('core', 0)],
    CapDrop: ['ALL'],
    CapAdd: request.capabilities,
    SecurityOpt: ['no-new-privileges', ...(filter === undefined ? [] : [`seccomp=${filter}`])],
    // Only init writes to the log, and it writes nothing.
    LogConfig: { Type: 'none' },
    ReadonlyRootfs: request.readOnlyRoot,
    ...(readOnlyPaths && { ReadonlyPaths: readOnlyPaths }),
    Mounts: [
      ...mounts.map(mountOf),
      ...memoryFolders.map(memoryMount),
      ...(devicesByMount && readOnlyPaths?.includes('/dev') ? readOnlyDevices : []),
    ],
    // The first process must be the one that is named here, whatever the engine's configuration says.
    Init: false,
    // How it ended must be readable until we remove it.
    AutoRemove: false,
    ...(runtime !== undefined && { Runtime: runtime }),
  };
}

function mountOf(mount: Mount | FolderMount) {
  if ('folder' in mount) return { Type: 'bind', Source: mount.folder, Target: mount.path, ReadOnly: true };
  const { volume, path, readOnly } = mount;
  // Without NoCopy, the engine fills an empty volume with what the image has at that path.
  const options = { NoCopy: true };
  return { Type: 'volume', Source: volume, Target: path, ReadOnly: readOnly, VolumeOptions: options };
}

function memoryMount({ path, maxBytes }: MemoryFolder) {
  return { Type: 'tmpfs', Target: path, TmpfsOptions: { SizeBytes: maxBytes, Mode: 0o1777 } };
}

/** The runtime puts its devices into the first. Without the second, `/dev/shm` would be read-only too. */
const readOnlyDevices = [
  { Type: 'tmpfs', Target: '/dev', ReadOnly: true },
  memoryMount({ path: '/dev/shm', maxBytes: 64 * 2 ** 20 }),
];

function networkMode(network: ContainerRequest['network']): string {
  if (network === 'none') return 'none';
  if (network === 'open') return 'bridge';
  return `container:${network.sharedWith}`;
}

function limit(name: string, value: number) {
  return { Name: name, Soft: value, Hard: value };
}
