import type { Capabilities } from '../port/engine-port.ts';
import type { DockerClient } from './client.ts';

interface Info {
  ServerVersion: string;
  OSType: string;
  Architecture: string;
  NCPU: number;
  MemTotal: number;
  Driver: string;
  DriverStatus?: [string, string][] | null;
  KernelVersion?: string;
  DockerRootDir?: string;
  SystemTime?: string;
  CgroupVersion?: string;
  Runtimes?: Record<string, unknown>;
  DefaultRuntime?: string;
  SecurityOptions?: string[] | null;
  MemoryLimit?: boolean;
  SwapLimit?: boolean;
  PidsLimit?: boolean;
  CpuCfsQuota?: boolean;
  Warnings?: string[] | null;
}

/** Storage drivers whose containers start with copies of the image's files. */
const copying = ['vfs', 'native'];

/** Asks the engine about itself. One round trip. */
export async function readFacts(client: DockerClient, signal?: AbortSignal): Promise<Capabilities> {
  const askedAt = client.clock.now();
  const info = await client.ask<Info>('asking the engine what it can do', 'GET /info', { signal });
  const answeredAt = client.clock.now();
  const options = (info.SecurityOptions ?? []).map((option) => /name=([^,]+)/.exec(option)?.[1] ?? option);
  return {
    product: 'Docker',
    apiVersion: client.apiVersion,
    serverVersion: info.ServerVersion,
    os: info.OSType,
    arch: info.Architecture,
    cpus: info.NCPU,
    memoryBytes: info.MemTotal,
    kernel: info.KernelVersion ?? '',
    storageDriver: info.Driver,
    imageStore: imageStore(info),
    keepsImageTimes: !copying.includes(info.Driver),
    diskQuota: diskQuota(info),
    rootFolder: info.DockerRootDir ?? '',
    clockAheadMs:
      info.SystemTime === undefined ? 0 : Date.parse(info.SystemTime) - (askedAt + answeredAt) / 2,
    cgroupVersion: info.CgroupVersion === '2' ? '2' : '1',
    runtimes: Object.keys(info.Runtimes ?? {}),
    defaultRuntime: info.DefaultRuntime ?? 'runc',
    security: {
      seccomp: options.includes('seccomp'),
      userns: options.includes('userns'),
      rootless: options.includes('rootless'),
      apparmor: options.includes('apparmor'),
      selinux: options.includes('selinux'),
    },
    limits: {
      memory: info.MemoryLimit ?? false,
      swap: info.SwapLimit ?? false,
      pids: info.PidsLimit ?? false,
      cpu: info.CpuCfsQuota ?? false,
    },
    warnings: info.Warnings ?? [],
  };
}

/** Docker before 23 has only its own store. */
function imageStore({ DriverStatus }: Info): Capabilities['imageStore'] {
  const isSnapshotter = DriverStatus?.some(
    ([name, value]) => name === 'driver-type' && value === 'io.containerd.snapshotter.v1',
  );
  return isSnapshotter ? 'containerd' : 'engine';
}

function diskQuota({ Driver, DriverStatus }: Info): Capabilities['diskQuota'] {
  if (['btrfs', 'zfs', 'devicemapper'].includes(Driver)) return 'yes';
  const below = DriverStatus?.find(([name]) => name === 'Backing Filesystem')?.[1];
  const isOnXfs = below === 'xfs' && ['overlay2', 'overlay'].includes(Driver);
  // `vfs` does not say what is below it.
  return isOnXfs || Driver === 'vfs' ? 'unknown' : 'no';
}
