import { once } from 'node:events';
import type { ConformanceCheck } from './check.ts';
import { failsAs, holds, NotChecked, same } from './testbed.ts';

/** Making, ending, listing and attaching to containers. */
export const containerChecks: readonly ConformanceCheck[] = [
  {
    name: 'names its machine as the kernel does',
    cost: 'The filter of system calls and the programs that Offsite brings are chosen by that name.',
    async run({ facts, start }) {
      await using container = await start();
      same('the name', facts.arch, (await container.shell('uname -m')).stdout.trim());
    },
  },
  {
    name: 'starts a killed container again with its files and without its processes',
    cost: 'What an agent left running can change its work while it is graded.',
    async run(testbed) {
      await using container = await testbed.start();
      const { containers } = testbed.port;
      await container.shell('echo kept > /opt/kept; sleep 600 > /dev/null 2>&1 &');
      await containers.kill(container.id);
      same('whether it runs after it was killed', (await containers.state(container.id)).isRunning, false);
      await containers.start(container.id);
      same('its file', (await container.shell('cat /opt/kept')).stdout, 'kept\n');
      // The container's first process is a `sleep` too.
      const count = 'cat /proc/[0-9]*/comm | grep -c sleep';
      same('the count of processes that sleep', (await container.shell(count)).stdout, '1\n');
    },
  },
  {
    name: 'reports a missing object and a conflict as different failures',
    cost: 'Snapshots are built twice at the same time, and cleanup fails.',
    async run({ port, create, labels, clock }) {
      await failsAs(
        'a look at a container that never was',
        'not-found',
        port.containers.state('offsite-no-such'),
      );
      same('an image that never was', await port.images.find('offsite/no-such:image'), undefined);
      const name = `offsite-check-${labels['offsite.instance']}-${clock.now()}`;
      await using container = await create({ name });
      await failsAs('a second container of the same name', 'conflict', create({ name }));
      await port.remove('container', container.id);
      await port.remove('container', container.id);
    },
  },
  {
    name: 'refuses a runtime that it does not have',
    cost: 'A sandbox that asks for gVisor runs without it.',
    async run({ create }) {
      const creating = async () => {
        await using _ = await create({ runtime: 'offsite-no-such' });
      };
      await failsAs('a container with a runtime that is not there', 'refused', creating());
    },
  },
  {
    name: 'finds containers by their labels, and reports their names and states',
    cost: 'What dead agents left is never removed, or living ones lose their containers.',
    async run({ port, create, labels, clock }) {
      const mark = `offsite-check=${labels['offsite.instance']}-${clock.now()}`;
      const [key = '', value = ''] = mark.split('=');
      const name = `offsite-check-${value}`;
      await using container = await create({ name, labels: { ...labels, [key]: value } });
      const { id } = container;
      const listed = async () =>
        (await port.list('container', [mark])).map((found) => [found.id, found.name, found.state]);
      same('the list', await listed(), [[id, name, 'created']]);
      await port.containers.start(id);
      same('the list', await listed(), [[id, name, 'running']]);
      same('a list by two labels', await port.list('container', [mark, 'offsite-check=other']), []);
    },
  },
  {
    name: 'ends a program once nobody holds its input',
    cost: 'Agents that were killed look alive forever, and their containers stay.',
    async run({ port: { containers }, create, clock }) {
      await using container = await create({ command: ['/bin/cat'], stdin: true, readOnlyRoot: true });
      const stream = await containers.attach(container.id, { onStderr: () => undefined });
      try {
        await containers.start(container.id);
        stream.write('hello');
        const [echo] = await once(stream, 'data', { signal: AbortSignal.timeout(30_000) });
        same('what the program says', String(echo), 'hello');
      } finally {
        stream.destroy();
      }
      const end = clock.now() + 10_000;
      const isRunning = async () => (await containers.state(container.id)).isRunning;
      while ((await isRunning()) && clock.now() < end) await clock.sleep(50);
      same('whether it still runs', await isRunning(), false);
    },
  },
  {
    name: 'lists the processes of a container',
    cost: 'Processes are listed from inside, where an agent may have replaced the programs that do it.',
    async run({ port: { containers }, clock, isPlain, start }) {
      await using container = await start();
      const { initPid } = await containers.state(container.id);
      holds(initPid > 0, `the id of the first process is ${initPid}`);
      let processes = await containers.processes(container.id, 'args');
      if (!isPlain && !processes?.some(({ pid }) => pid === initPid))
        throw new NotChecked('its list is of other processes; Offsite ends them by restarting the sandbox');
      // The first process may still be about to become the program: a start does not wait for that.
      for (let look = 0; look < 50 && processes?.[0]?.command !== '/bin/sleep infinity'; look++) {
        await clock.sleep(100);
        processes = await containers.processes(container.id, 'args');
      }
      holds(processes !== undefined, 'it has no list of processes (is ps missing on its machine?)');
      same(
        'the first process',
        processes?.map(({ pid, command }) => [pid, command]),
        [[initPid, '/bin/sleep infinity']],
      );
    },
  },
  {
    name: 'reports what happened in a container',
    cost: 'A command that was killed for lack of memory looks like one that failed by itself.',
    async run({ port: { containers }, facts, start }) {
      if (!facts.reportsEvents)
        throw new NotChecked('it reports none; Offsite reads the counters of the kernel');
      await using container = await start();
      const opened = await containers.exec(container.id, { argv: ['/bin/true'], onPiece: () => undefined });
      holds(opened.started, 'it cannot start /bin/true');
      if (!opened.started) return;
      using exec = opened.exec;
      const signal = AbortSignal.timeout(10_000);
      for await (const event of containers.events(container.id, signal)) {
        if (event.kind === 'exec-started' && event.execId === exec.id) return;
      }
      holds(false, 'the start of a command was not reported in 10 s');
    },
  },
];
