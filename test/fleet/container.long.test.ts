import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { expect } from 'vitest';
import { workflowBundle } from '../../src/fleet/workflow-bundle.ts';
import { countFinished } from '../daemon/sharing.ts';
import { needs } from '../needs.ts';
import { openFleetPlace } from './fleet-place.ts';

const checkout = fileURLToPath(new URL('../..', import.meta.url));
const socket = '/var/run/docker.sock';

// As the manifests of examples/kubernetes start it.
needs(existsSync(socket), socket).test(
  'a worker in a container without privileges runs trials on the engine whose socket it has, and drains at SIGTERM',
  async () => {
    await using fleet = await openFleetPlace();
    const { place, service } = fleet;
    const cases = [
      { id: 'a', verify: 'cat done.txt', artifacts: ['done.txt'], prepare: 'echo ready > ready.txt' },
    ];
    const file = fleet.suite({ cases, trials: 3 });
    // The container cannot write one into the checkout.
    await workflowBundle();
    const name = `offsite-test-worker-${process.pid}`;
    const home = fleet.folderOf('contained');
    const container = execa(
      'docker',
      [
        'run',
        '--rm',
        '--name',
        name,
        '--network=host',
        '--read-only',
        '--tmpfs=/tmp',
        '--init',
        '--cap-drop=ALL',
        '--security-opt=no-new-privileges',
        `--volume=${socket}:/run/docker.sock`,
        `--volume=${checkout}:/opt/offsite:ro`,
        `--volume=${place.folder}:${place.folder}`,
        ...Object.entries({ ...service.env, OFFSITE_HOME: home, DOCKER_HOST: 'unix:///run/docker.sock' }).map(
          ([key, value]) => `--env=${key}=${value}`,
        ),
        'offsite/base',
        'node',
        '/opt/offsite/src/cli/main.ts',
        'fleet',
        'worker',
        '-c',
        '1',
        '--config',
        join(place.folder, 'project', 'offsite.yaml'),
      ],
      { reject: false, all: true },
    );
    try {
      const { exitCode, stdout, stderr } = await fleet.run(file);
      expect(exitCode, stderr).toBe(0);
      expect(stdout).toMatch(/^all +3 +0 +0 +100 %/m);
      expect(countFinished([home])).toEqual({ finished: [3], invalid: 0, twice: 0 });
    } finally {
      await execa('docker', ['stop', '--time', '60', name], { reject: false });
    }
    const { exitCode, all } = await container;
    expect(exitCode, all).toBe(0);
    expect(all).toMatch(/the worker has ended/);
  },
  240_000,
);
