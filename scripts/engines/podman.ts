import { type DebianRoot, debianRoot } from './debian-root.ts';
import { startPodman } from './podman-service.ts';
import type { EngineEntry } from './test-engine.ts';

const packages = [
  'procps',
  'podman',
  'crun',
  'iptables',
  'iproute2',
  'ca-certificates',
  'netavark',
  'aardvark-dns',
];

const bookworm: DebianRoot = { suite: 'bookworm', packages };
const trixie: DebianRoot = { suite: 'trixie', packages: [...packages, 'nftables', 'passt'] };

/** The versions of Podman that Debian has, and the ways to run them. */
export const podmanEngines: readonly EngineEntry[] = [
  entry('podman', 'Podman', bookworm),
  entry('podman-5', 'Podman', trixie),
];

function entry(name: string, title: string, root: DebianRoot): EngineEntry {
  return {
    name,
    title,
    async open(ground) {
      return startPodman({ root: await debianRoot(root, ground), ground });
    },
  };
}
