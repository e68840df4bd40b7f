import { filterObstacle } from '../container/seccomp/filter.ts';
import type { ConformanceCheck } from './check.ts';
import { holds, NotChecked, same } from './expect.ts';
import type { Probe } from './testbed.ts';
import { interfacesOf, waysOut } from './ways-out.ts';

/** A server on the container's loopback. */
const serve = `
import socket
server = socket.create_server(('127.0.0.1', 4711))
open('/opt/listens', 'w').close()
while True:
    connection, _ = server.accept()
    connection.sendall(b'hello')
    connection.close()
`;
const askServer = `
import socket
print(socket.create_connection(('127.0.0.1', 4711), 10).recv(5).decode())
`;

/** What a container must not be able to do. */
export const wallChecks: readonly ConformanceCheck[] = [
  {
    name: 'gives only the requested privileges, and no way to gain more',
    cost: 'An agent can gain privileges and leave its sandbox.',
    async run({ start }) {
      const look = "awk '/^(CapBnd|CapEff):/ { print $1 $2 }' /proc/self/status";
      const [none, one] = ['0'.repeat(16), `${'0'.repeat(15)}1`];
      await using without = await start();
      same('what a process has', (await without.shell(look)).stdout, `CapEff:${none}\nCapBnd:${none}\n`);
      await using chown = await start({ capabilities: ['CHOWN'] });
      const some = `CapEff:${one}\nCapBnd:${one}\n`;
      same('what a process has that may change owners', (await chown.shell(look)).stdout, some);
      // Not every kernel says NoNewPrivs in /proc/self/status.
      await without.prepare('cp /usr/bin/id /opt/as-root && chmod 4755 /opt/as-root');
      const user = await without.shell('/opt/as-root -u', { user: '1234:1234' });
      same("the user that a set-user-id program of root's runs as", user.stdout, '1234\n');
    },
  },
  {
    name: 'takes a filter of system calls',
    cost: "Agents can reach the kernel's whole interface, with all its defects.",
    async run({ facts, runtime, start }) {
      const obstacle = filterObstacle({ runtime }, facts);
      if (obstacle !== undefined) throw new NotChecked(obstacle);
      const filter = JSON.stringify({
        defaultAction: 'SCMP_ACT_ALLOW',
        syscalls: [{ names: ['mkdir', 'mkdirat'], action: 'SCMP_ACT_ERRNO', errnoRet: 1 }],
      });
      await using container = await start({ filter });
      const ran = await container.shell('touch /tmp/file && echo made; mkdir /tmp/folder || echo refused');
      same('what a filter lets be made', ran.stdout, 'made\nrefused\n');
    },
  },
  {
    name: 'protects devices and kernel settings from changes',
    cost: 'An agent can replace /dev/null, and so what verify reads and writes there.',
    async run({ isPlain, start }) {
      const readOnlyPaths = ['/proc/sys', '/dev'];
      await using container = await start({ readOnlyPaths, capabilities: ['DAC_OVERRIDE', 'CHOWN'] });
      // The settings of a kernel of the container's own concern nobody else.
      const set = isPlain ? 'echo 1 > /proc/sys/vm/drop_caches && echo set; ' : '';
      const ran = await container.shell(
        `rm /dev/null && echo removed; ${set}` +
          'echo gone > /dev/null && echo 1; touch /dev/shm/file && echo 2',
      );
      same('what can be done', ran.stdout, '1\n2\n');
    },
  },
  {
    name: 'makes the root of a container read-only on request',
    cost: 'The relay beside the sandbox can be changed.',
    async run({ start }) {
      await using container = await start({ readOnlyRoot: true });
      same('the exit code of a write', (await container.shell('touch /opt/file 2> /dev/null')).exitCode, 1);
    },
  },
  {
    name: 'gives a container without a network only its own loopback',
    cost: 'A sealed sandbox reaches the network.',
    async run({ start }) {
      await using container = await start();
      same('its interfaces', await interfacesOf(container), ['lo']);
      same('its routes', (await container.shell('tail -n +2 /proc/net/route')).stdout, '');
      same('the addresses to which it has a route', await waysOut(container), []);
    },
  },
  {
    name: 'lets containers share a separate network',
    cost: 'Harnesses cannot reach the relay, so they reach no model; or what dead agents left stays.',
    async run({ port, start }) {
      await using first = await start();
      await using second = await start({ network: { sharedWith: first.id } });
      await first.prepare(
        'python3 -c "$SERVE" > /dev/null 2>&1 & until test -e /opt/listens; do sleep 0.05; done',
        { env: { SERVE: serve } },
      );
      const ask = 'python3 -c "$ASK" 2> /dev/null';
      const answerIn = async (container: Probe) =>
        (await container.shell(ask, { env: { ASK: askServer } })).stdout;
      same('what the second hears from a server of the first', await answerIn(second), 'hello\n');
      await using other = await start();
      same('what a container hears that should have a network of its own', await answerIn(other), '');
      await port.remove('container', first.id);
    },
  },
  {
    name: 'takes a running container off its network',
    cost: 'Processes that an installation started can still reach the network while the agent works.',
    async run({ port: { containers }, start }) {
      await using container = await start({ network: 'open' });
      const { networks } = await containers.state(container.id);
      holds(networks.length > 0, 'a container with a network is on none');
      const before = await waysOut(container);
      holds(before.length > 0, 'a container with a network has no route to any other address');
      for (const network of networks) await containers.disconnect(container.id, network);
      same('its networks', (await containers.state(container.id)).networks, []);
      same('its interfaces', await interfacesOf(container), ['lo']);
      same('the addresses to which it has a route', await waysOut(container), []);
    },
  },
];
