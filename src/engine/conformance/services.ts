import { networkObstacle } from '../network/network.ts';
import type { ConformanceCheck } from './check.ts';
import { holds, NotChecked, same } from './expect.ts';
import { interfacesOf } from './ways-out.ts';

const timeless = new AbortController().signal;

/** What the services beside a sandbox need. */
export const serviceChecks: readonly ConformanceCheck[] = [
  {
    name: 'gives containers a network of their own that leads nowhere else',
    cost: 'No case can have services.',
    async run({ facts, imageId, labels, openNetwork, runtime, start }) {
      const obstacle = networkObstacle({ runtime }, facts);
      if (obstacle !== undefined) throw new NotChecked(obstacle);
      await using network = await openNetwork({ imageId, labels }, timeless);
      const join = (address: string) =>
        network.join({ address, hostName: 'member', network: 'none', hosts: {} }, timeless);
      await using first = await join('10.213.0.2');
      await using second = await join('10.213.0.3');
      await using server = await start({ network: first.network });
      await using client = await start({ network: second.network });
      const listen = "node -e \"require('net').createServer(s=>s.end('hello')).listen(80)\" &";
      await server.shell(`${listen} until grep -q ':0050 ' /proc/net/tcp6; do sleep 0.05; done`);
      const ask = await client.shell('bash -c "cat < /dev/tcp/10.213.0.2/80"');
      same('what the server says to another member', ask.stdout, 'hello');
      const routes = (await client.shell('tail -n +2 /proc/net/route | cut -f 2,3')).stdout;
      same('its routes', routes, '0000D50A\t00000000\n');
      same('its interfaces', await interfacesOf(client), ['eth0', 'lo']);
      const gains = await client.shell("awk '/^CapEff/ { print $2 }' /proc/self/status");
      same('what a container in it may do', gains.stdout, `${'0'.repeat(16)}\n`);
    },
  },
  {
    name: 'reports how the program of a container ended',
    cost: 'A service that does not start is not noticed.',
    async run({ port: { containers }, clock, start }) {
      await using container = await start({ command: ['/bin/sh', '-c', 'exit 3'] });
      let state = await containers.state(container.id);
      for (let look = 0; state.isRunning && look < 500; look++) {
        await clock.sleep(20);
        state = await containers.state(container.id);
      }
      same('the exit code', state.exitCode, 3);
      await using running = await start();
      same('the exit code of what runs', (await containers.state(running.id)).exitCode ?? null, null);
    },
  },
  {
    name: 'gives a container variables, and folders in bounded memory',
    cost: 'Services start without their settings, or fill the disk of the machine.',
    async run({ start }) {
      const memoryFolders = [{ path: '/data', maxBytes: 2 ** 20 }];
      await using container = await start({ env: { GREETING: 'hello there' }, memoryFolders });
      const said = await container.shell('tr "\\0" "\\n" < /proc/1/environ | grep GREETING');
      same('its variable', said.stdout, 'GREETING=hello there\n');
      const written = await container.shell('head -c 2M /dev/zero > /data/file; stat -c %s /data/file');
      same('the bytes that fit', Number(written.stdout), 2 ** 20);
      holds(
        (await container.shell('grep -c " /data tmpfs" /proc/mounts')).exitCode === 0,
        'it is not in memory',
      );
    },
  },
];
