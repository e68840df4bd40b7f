import type { ConformanceCheck } from './check.ts';
import { holds, NotChecked, same } from './expect.ts';

/** What a container must not be able to do. */
export const wallChecks: readonly ConformanceCheck[] = [
  {
    name: 'gives only the requested privileges, and no way to gain more',
    cost: 'An agent can gain privileges and leave its sandbox.',
    async run({ start }) {
      const look = "awk '/^(NoNewPrivs|CapBnd|CapEff):/ { print $1 $2 }' /proc/self/status";
      const [none, one] = ['0'.repeat(16), `${'0'.repeat(15)}1`];
      await using without = await start();
      const nothing = `CapEff:${none}\nCapBnd:${none}\nNoNewPrivs:1\n`;
      same('what a process has', (await without.shell(look)).stdout, nothing);
      await using chown = await start({ capabilities: ['CHOWN'] });
      const some = `CapEff:${one}\nCapBnd:${one}\nNoNewPrivs:1\n`;
      same('what a process has that may change owners', (await chown.shell(look)).stdout, some);
    },
  },
  {
    name: 'takes a filter of system calls',
    cost: "Agents can reach the kernel's whole interface, with all its defects.",
    async run({ facts, start }) {
      if (!facts.takesFilters || !facts.security.seccomp) throw new NotChecked('it reports no support');
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
    async run({ start }) {
      const readOnlyPaths = ['/proc/sys', '/dev'];
      await using container = await start({ readOnlyPaths, capabilities: ['DAC_OVERRIDE', 'CHOWN'] });
      const ran = await container.shell(
        'rm /dev/null && echo removed; echo 1 > /proc/sys/vm/drop_caches && echo set; ' +
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
      same('the exit code of a write', (await container.shell('touch /tmp/file 2> /dev/null')).exitCode, 1);
    },
  },
  {
    name: 'gives a container without a network only its own loopback',
    cost: 'A sealed sandbox reaches the network.',
    async run({ start }) {
      await using container = await start();
      same('its interfaces', (await container.shell('ls /sys/class/net')).stdout, 'lo\n');
      same('its routes', (await container.shell('tail -n +2 /proc/net/route')).stdout, '');
    },
  },
  {
    name: 'lets containers share a separate network',
    cost: 'Harnesses cannot reach the relay, so they reach no model; or what dead agents left stays.',
    async run({ port, start }) {
      await using first = await start();
      await using second = await start({ network: { sharedWith: first.id } });
      const look = 'readlink /proc/self/ns/net';
      same('the network of the second', (await second.shell(look)).stdout, (await first.shell(look)).stdout);
      await using other = await start();
      holds(
        (await other.shell(look)).stdout !== (await first.shell(look)).stdout,
        'containers that should each have a network of their own share one',
      );
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
      for (const network of networks) await containers.disconnect(container.id, network);
      same('its networks', (await containers.state(container.id)).networks, []);
      same('its interfaces', (await container.shell('ls /sys/class/net')).stdout, 'lo\n');
    },
  },
];
