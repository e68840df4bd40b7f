import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { debianRoot } from './debian-root.ts';
import { startDockerd } from './dockerd.ts';
import { goProgram } from './go-program.ts';
import type { EngineEntry } from './test-engine.ts';

const packages = ['procps', 'docker.io', 'iptables', 'iproute2', 'ca-certificates', 'crun'];
const bookworm = { suite: 'bookworm', packages } as const;

/** The branch `go` of gVisor, which Go can build. */
const gvisor = {
  package: 'gvisor.dev/gvisor/runsc',
  module: 'gvisor.dev/gvisor',
  version: 'v0.0.0-20260701204157-69c2d17aea96',
  options: ['-trimpath', '-ldflags', '-s -w -X gvisor.dev/gvisor/runsc/version.version=20260701'],
};

/** What docs/engines.md says that Offsite needs. */
const gvisorArguments = ['--network=host', '--overlay2=none', '--file-access=shared'];

/** Docker with another runtime than runc for all sandboxes. */
export const runtimeEngines: readonly EngineEntry[] = [
  {
    name: 'docker-crun',
    title: 'Docker with crun',
    async open(ground) {
      const settings = { runtimes: { crun: { path: '/usr/bin/crun' } }, 'default-runtime': 'crun' };
      // crun 1.8 refuses control groups of both versions side by side.
      const withoutUnified = true;
      return startDockerd({ root: await debianRoot(bookworm, ground), withoutUnified, settings, ground });
    },
  },
  {
    name: 'docker-gvisor',
    title: 'Docker with gVisor',
    async open(ground) {
      const program = await goProgram(gvisor, ground);
      const path = '/usr/local/bin/runsc';
      const settings = {
        runtimes: {
          runsc: { path, runtimeArgs: gvisorArguments },
          // As gVisor's own documentation has it, which Offsite refuses.
          'runsc-own-files': { path },
          'runsc-own-loopback': { path, runtimeArgs: gvisorArguments.slice(1) },
        },
        'default-runtime': 'runsc',
      };
      return startDockerd({
        root: await debianRoot(bookworm, ground),
        settings,
        ground,
        async prepare(room) {
          await copyFile(program, join(room.folder, 'runsc'));
          await room.run('install', ['-m', '755', join(room.folder, 'runsc'), path]);
        },
      });
    },
  },
];
