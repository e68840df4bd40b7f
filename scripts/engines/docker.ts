import { type DebianRoot, debianRoot } from './debian-root.ts';
import { type Dockerd, startDockerd } from './dockerd.ts';
import { goProgram } from './go-program.ts';
import type { EngineEntry } from './test-engine.ts';

const packages = ['procps', 'docker.io', 'iptables', 'iproute2', 'ca-certificates', 'uidmap'];

export const bookworm = { suite: 'bookworm', packages } as const;
const trixie = { suite: 'trixie', packages } as const;
const forky = { suite: 'forky', packages } as const;

/** The line of Docker Engine 29. No proxy has its tags by that name. */
const moby = {
  package: 'github.com/moby/moby/v2/cmd/dockerd',
  version: 'v2.0.0-beta.24',
  options: [
    '-tags',
    'netgo,osusergo,static_build,exclude_graphdriver_btrfs',
    '-trimpath',
    '-ldflags',
    '-s -w -X github.com/moby/moby/v2/dockerversion.Version=v2.0.0-beta.24',
  ],
};

/** The versions of Docker that Debian has, and the ways to set them up. */
export const dockerEngines: readonly EngineEntry[] = [
  entry('docker-20', 'Docker', bookworm),
  entry('docker-26', 'Docker', trixie),
  entry('docker-28', 'Docker', forky),
  entry('docker-28-containerd', "Docker with containerd's image store", forky, {
    settings: { features: { 'containerd-snapshotter': true } },
  }),
  entry('docker-28-userns', 'Docker with user namespaces', forky, {
    settings: { 'userns-remap': 'default' },
  }),
  {
    name: 'docker-29',
    title: "Docker with containerd's image store, built from its module",
    async open(ground) {
      const program = await goProgram(moby, ground);
      // As engine 29.0 has it; later ones accept older clients again.
      const settings = { 'min-api-version': '1.44', features: { 'containerd-snapshotter': true } };
      return startDockerd({ root: await debianRoot(forky, ground), program, settings, ground });
    },
  },
];

function entry(name: string, title: string, root: DebianRoot, dockerd: Partial<Dockerd> = {}): EngineEntry {
  return {
    name,
    title,
    async open(ground) {
      return startDockerd({ root: await debianRoot(root, ground), ...dockerd, ground });
    },
  };
}
