import type { ConformanceCheck } from './check.ts';
import { holds, same } from './expect.ts';

const MiB = 2 ** 20;

/** What a container may use. */
export const limitChecks: readonly ConformanceCheck[] = [
  {
    name: 'holds a container to its memory, swap included, and reports what the kernel killed',
    cost: 'One trial can take all memory of the machine, and a command killed for memory looks failed.',
    async run({ port: { containers }, facts, start }) {
      await using container = await start({ memoryBytes: 48 * MiB });
      // tail keeps everything of an input without line ends.
      const eat = await container.shell(`head -c ${160 * MiB} /dev/zero | tail -n 1 > /dev/null`);
      same('the exit code of what took more', eat.exitCode, 137);
      if (!facts.reportsEvents) return;
      for await (const event of containers.events(container.id, AbortSignal.timeout(10_000))) {
        if (event.kind === 'oom') return;
      }
      holds(false, 'the kill was not reported in 10 s');
    },
  },
  {
    name: 'holds a container to a number of processes, which can be changed while it runs',
    cost: 'A fork bomb stops the machine, and processes of an agent escape while they are ended.',
    async run({ port: { containers }, start }) {
      const memoryBytes = 128 * 2 ** 20;
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
      await container.prepare(`head -c ${2 * MiB} /dev/zero > /tmp/written`);
      const bytes = await containers.writtenBytes(container.id);
      holds(bytes >= 2 * MiB && bytes < 4 * MiB, `of 2 MiB that were written it reports ${bytes} bytes`);
    },
  },
];
