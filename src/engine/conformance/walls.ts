import { type ConformanceCheck, NotLookedAt } from './check.ts';
import { holds, same } from './expect.ts';

/** What a container is kept from. */
export const wallChecks: readonly ConformanceCheck[] = [
  {
    name: 'gives no privilege but those asked for, and none to be gained',
    cost: 'An agent can become more than it should be, and leave its sandbox.',
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
    cost: "The kernel's whole interface is open to agents, with whatever defects it has.",
    async run({ facts, start }) {
      if (!facts.takesFilters || !facts.security.seccomp) throw new NotLookedAt('it says that it takes none');
      const filter = JSON.stringify({
        defaultAction: 'SCMP_ACT_ALLOW',
        syscalls: [{ names: ['mkdir', 'mkdirat'], action: 'SCMP_ACT_ERRNO', errnoRet: 1 }],
      });
      await using container = await start({ filter });
      const ran = await container.shell('touch /file && echo made; mkdir /folder || echo refused');
      same('what a filter lets be made', ran.stdout, 'made\nrefused\n');
    },
  },
  {
    name: 'keeps devices and the settings of the kernel from being changed',
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
    name: 'keeps the root of a container from being written where that is asked for',
    cost: 'What stands beside the sandbox can be changed.',
    async run({ start }) {
      await using container = await start({ readOnlyRoot: true });
      same('the exit code of a write', (await container.shell('touch /file 2> /dev/null')).exitCode, 1);
    },
  },
  {
    name: 'gives a container without a network its own loopback and nothing else',
    cost: 'A sealed sandbox reaches the network.',
    async run({ start }) {
      await using container = await start();
      same('its interfaces', (await container.shell('ls /sys/class/net')).stdout, 'lo\n');
      same('its routes', (await container.shell('tail -n +2 /proc/net/route')).stdout, '');
    },
  },
  {
    name: 'lets containers share a network of their own',
    cost: 'Harnesses cannot reach the relay, and so no model.',
    async run({ start }) {
      await using first = await start();
      await using second = await start({ network: { sharedWith: first.id } });
      const look = 'readlink /proc/self/ns/net';
      same('the network of the second', (await second.shell(look)).stdout, (await first.shell(look)).stdout);
      await using other = await start();
      holds(
        (await other.shell(look)).stdout !== (await first.shell(look)).stdout,
        'containers that should each have a network of their own share one',
      );
    },
  },
  {
    name: 'takes a running container off its network',
    cost: 'What an installation started can still reach the network while the agent works.',
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
