import { debianRoot } from './debian-root.ts';
import { startPodman } from './podman-service.ts';
import type { EngineEntry } from './test-engine.ts';

const packages = [
  'procps',
  'podman',
  'crun',
  'iptables',
  'iproute2',
  'ca-certificates',
  'uidmap',
  'slirp4netns',
  'netavark',
  'aardvark-dns',
  'fuse-overlayfs',
];

/** The versions of Podman that Debian has. */
export const podmanEngines: readonly EngineEntry[] = [
  {
    name: 'podman',
    title: 'Podman',
    async open(ground) {
      return startPodman({ root: await debianRoot({ suite: 'bookworm', packages }, ground), ground });
    },
  },
];
