import { filterObstacle } from '../container/seccomp/filter.ts';
import { networkObstacle } from '../network/network.ts';
import { isEngineFailure } from '../port/failure.ts';
import {
  type ConformanceCheck,
  holds,
  killed,
  NotChecked,
  type Probe,
  type Ran,
  same,
  type Testbed,
} from './testbed.ts';

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

/** The names of a container's network interfaces, sorted. Not every kernel has `/sys/class/net`. */
async function interfacesOf(container: Probe): Promise<string[]> {
  const { stdout } = await container.shell("awk -F: 'NR > 2 { print $1 }' /proc/net/dev");
  return stdout.split(/\s+/).filter(Boolean).toSorted();
}

/** An address of each family that is only for examples. */
const foreignAddresses = ['192.0.2.1', '2001:db8::1'] as const;

/** To connect a datagram socket looks up the route and sends nothing. Its port is that of `discard`. */
const lookUpRoutes = `
import socket
for address in ${JSON.stringify(foreignAddresses)}:
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
        print(address)
    except OSError:
        pass
`;

/** The addresses of others, one of each family, to which a container has a route. Sends no packet. */
async function waysOut(container: Probe): Promise<string[]> {
  const { stdout } = await container.prepare('python3 -c "$LOOK_UP_ROUTES"', {
    env: { LOOK_UP_ROUTES: lookUpRoutes },
  });
  return stdout.split('\n').filter(Boolean);
}

const MiB = 2 ** 20;

/** Milliseconds in which an engine notices that a container ended by itself. */
const endMs = 10_000;

/** What a container may use. */
export const limitChecks: readonly ConformanceCheck[] = [
  {
    name: 'holds a container to its memory, swap included, and reports what the kernel killed',
    cost: 'One trial can take all memory of the machine, and a command killed for memory looks failed.',
    async run(testbed) {
      const { isPlain, start } = testbed;
      const { containers } = testbed.port;
      // A kernel of the container's own needs some for itself.
      await using container = await start({ memoryBytes: (isPlain ? 48 : 256) * MiB });
      // tail keeps everything of an input without line ends.
      const eat = `head -c ${(isPlain ? 160 : 512) * MiB} /dev/zero | tail -n 1 > /dev/null`;
      if (!isPlain) {
        const ran = await beyondLimit(container, eat);
        if (ran?.exitCode === killed) return;
        const seen = `what took more ends with ${ran?.exitCode}, and the container still runs`;
        holds(await hasEnded(testbed, container), seen);
        return;
      }
      same('the exit code of what took more', (await container.shell(eat)).exitCode, killed);
      if (containers.events === undefined) return;
      for await (const event of containers.events(container.id, AbortSignal.timeout(10_000))) {
        if (event.kind === 'oom') return;
      }
      holds(false, 'the kill was not reported in 10 s');
    },
  },
  {
    name: 'holds a container to a number of processes, which can be changed while it runs',
    cost: 'A fork bomb stops the machine, and processes of an agent escape while they are ended.',
    async run({ port: { containers }, isPlain, start }) {
      if (!isPlain) {
        // Threads of the container's own kernel count too. Offsite ends the processes of such a container by
        // restarting it, so its limit never changes.
        await using own = await start({ pids: 128 });
        await own.prepare('true');
        const all = 'i=0; while [ $i -lt 200 ]; do sleep 600 & i=$((i + 1)); done';
        const ran = await beyondLimit(own, all);
        holds(ran?.exitCode !== 0, 'a limit of 128 processes let 200 be made');
        holds(
          ran?.exitCode !== null,
          'with a limit of 128 processes, 200 are still being made after a minute',
        );
        return;
      }
      const memoryBytes = 128 * MiB;
      await using container = await start({ pids: 12, memoryBytes });
      const fork = 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 0.2 & done; wait';
      const bomb = await container.shell(fork);
      holds(bomb.stderr !== '', 'a limit of 12 processes let 15 be made');
      await containers.limitProcesses(container.id, { pids: 1, memoryBytes });
      const banned = await container.shell('sleep 0 & wait $! && echo forked');
      holds(!banned.stdout.includes('forked'), 'a limit of one process let another be made');
      await containers.limitProcesses(container.id, { pids: 64, memoryBytes });
      same('what a higher limit lets be made', (await container.shell(fork)).stderr, '');
    },
  },
  {
    name: 'holds a container to its share of the processors',
    cost: 'Concurrent trials take time from each other, so deadlines hit the wrong ones.',
    async run({ start }) {
      await using container = await start({ cpus: 0.1 });
      const loop = "timeout 1 sh -c 'while :; do :; done' &";
      // On a busy machine it takes a while until all of them run.
      const now = 'read -r seconds _ < /proc/uptime; echo "at $seconds"';
      // Control groups version 2, then 1. The kernel counts how often it made the container wait.
      const counts = 'cat /sys/fs/cgroup/cpu.stat /sys/fs/cgroup/cpu/cpu.stat';
      const ran = await container.shell(
        `${now}; ${loop} ${loop} ${loop} ${loop} wait; times; ${now}; ${counts} 2> /dev/null`,
      );
      // The shell's own times, then those of its children.
      const [, minutes = '0', seconds = '9'] = /s\n(\d+)m([\d.]+)s/.exec(ran.stdout) ?? [];
      const used = Number(minutes) * 60 + Number(seconds);
      const [begin = 0, end = 0] = [...ran.stdout.matchAll(/^at ([\d.]+)$/gm)].map(([, at]) => Number(at));
      const passed = (end - begin).toFixed(2);
      const throttled = /nr_throttled (\d+)/.exec(ran.stdout)?.[1];
      holds(
        used < 0.3 * (end - begin),
        `with a tenth of a processor, ${passed} s of work took ${used} s of one`,
      );
      holds(throttled !== '0', 'the kernel never made a container with a tenth of a processor wait');
    },
  },
  {
    name: 'holds processes to a number of open files',
    cost: 'A trial can use up the open files of the machine.',
    async run({ start }) {
      await using container = await start({ nofile: 512 });
      same('the limit', (await container.shell('ulimit -n')).stdout, '512\n');
    },
  },
  {
    name: 'measures what a container wrote',
    cost: 'Nothing stops a trial that fills the disk.',
    async run({ port: { containers }, start }) {
      await using container = await start();
      await container.prepare(`head -c ${2 * MiB} /dev/zero > /opt/written`);
      const bytes = await containers.writtenBytes(container.id);
      holds(bytes >= 2 * MiB && bytes < 4 * MiB, `of 2 MiB that were written it reports ${bytes} bytes`);
    },
  },
];

/**
 * Runs a line of shell that takes more than the container may. A kernel of the container's own may end there,
 * and the container with it: then the engine may not know any more how the command ended, and this resolves
 * with undefined.
 */
async function beyondLimit(container: Probe, script: string): Promise<Ran | undefined> {
  try {
    return await container.shell(script);
  } catch (error) {
    if (isEngineFailure(error, 'not-found') || isEngineFailure(error, 'conflict')) return undefined;
    throw error;
  }
}

/** Whether a container ends by itself within {@link endMs}. */
async function hasEnded({ port: { containers }, clock }: Testbed, { id }: Probe): Promise<boolean> {
  const end = clock.now() + endMs;
  while ((await containers.state(id)).isRunning) {
    if (clock.now() > end) return false;
    await clock.sleep(50);
  }
  return true;
}
