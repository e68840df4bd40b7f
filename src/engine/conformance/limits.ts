import { isEngineFailure } from '../port/failure.ts';
import type { ConformanceCheck } from './check.ts';
import { holds, killed, type Probe, type Ran, same, type Testbed } from './testbed.ts';

const MiB = 2 ** 20;

/** Milliseconds in which an engine notices that a container ended by itself. */
const endMs = 10_000;

/** What a container may use. */
export const limitChecks: readonly ConformanceCheck[] = [
  {
    name: 'holds a container to its memory, swap included, and reports what the kernel killed',
    cost: 'One trial can take all memory of the machine, and a command killed for memory looks failed.',
    async run(testbed) {
      const { facts, isPlain, start } = testbed;
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
