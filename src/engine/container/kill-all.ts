import { firstThrown, infrastructureError, OffsiteError } from '../../base/offsite-error.ts';
import { processEnds } from '../../bounds/sandbox.ts';
import { runQuietly } from '../exec/run-quietly.ts';
import type { CommandColumn, EngineProcess } from '../port/containers.ts';
import { containerDamaged, isEngineFailure } from '../port/failure.ts';
import { readGroupFile } from './hosts-file.ts';
import { hostFactsOf, isNotedAsEnded, type RunningContainer } from './running-container.ts';

const alonePollMs = 3;

/**
 * How the processes were ended: `killed` by signal, or `restarted` if signals left something alive, or if the
 * engine cannot tell.
 */
type KillAllResult = 'killed' | 'restarted';

export interface KillAllRequest {
  signal?: AbortSignal | undefined;
  /** Does nothing if the container's `restarts` are not these any more: nothing of then is alive. */
  unlessRestartedSince?: number;
}

const never = new AbortController().signal;

/**
 * Kills every process of the container but init, and checks that none is left. Processes of other users are
 * killed as those users, since the container has no CAP_KILL. If something survives that, the container is
 * killed and started again, which ends its process namespace. That keeps its files but not its network
 * namespace or /dev/shm. Throws if something is still alive after that, and `ENGINE_CONTAINER_DAMAGED` if the
 * container does not start again.
 *
 * If the engine cannot list the container's processes, as with gVisor, the container is always restarted: a
 * list that comes from inside is as hostile as what runs there, and the engine knows when a container ended.
 */
export async function killAll(
  container: RunningContainer,
  { signal, unlessRestartedSince }: KillAllRequest = {},
): Promise<KillAllResult> {
  signal?.throwIfAborted();
  using _turn = await container.endings.acquire(signal ?? never);
  if (unlessRestartedSince !== undefined && container.restarts !== unlessRestartedSince) return 'restarted';
  if (await killBySignal(container)) return 'killed';
  await restart(container);
  // With a kernel of its own it may end at any time, and its first program may be the agent's if it begins
  // with a shell. If it has ended, nothing is alive.
  const left = await unlessEnded(container, processesByEngine(container));
  if (left !== undefined && left.length > 0) throw survivors(left);
  return 'restarted';
}

/** Whether nothing is left alive. Usually nothing runs when it begins. */
async function killBySignal(container: RunningContainer): Promise<boolean> {
  // If the engine cannot list the container's processes, the count is useless too: it counts those of the
  // runtime.
  if (!container.listsProcesses) return false;
  try {
    const { clock } = container.port;
    const until = clock.now() + processEnds.time.death;
    // Repeat: a command that did not start looks like one that printed something else.
    while (!(await isAlone(container))) {
      const running = await processesByEngine(container);
      if (running === undefined || clock.now() > until) return false;
      await killProcesses(container, running, until);
    }
    return true;
  } catch (caught) {
    const thrown = firstThrown(caught);
    // If a container is so full, or so damaged, that nothing can start in it, only a restart helps.
    if (thrown instanceof OffsiteError && !isEngineFailure(thrown, 'connection')) return false;
    throw thrown;
  }
}

/**
 * Each process is killed as its own user, since the container has no CAP_KILL. An agent may have started
 * processes of many users, so this stops when the time is over.
 */
async function killProcesses(
  container: RunningContainer,
  running: EngineProcess[],
  until: number,
): Promise<void> {
  for (const uid of new Set(running.map((process) => process.uid))) {
    if (container.port.clock.now() > until) return;
    await runQuietly(container, 'kill -9 -1', { user: String(uid) });
  }
}

/**
 * Whether nothing but init is left, by the kernel's count. A process that just ended may still be counted for
 * a moment. Where this process cannot see the count, the engine's list tells.
 */
async function isAlone(container: RunningContainer): Promise<boolean> {
  for (let look = 0; look < processEnds.count.aloneLooks; look++) {
    if (look > 0) await container.port.clock.sleep(alonePollMs);
    const count = await countProcesses(container);
    if (count === undefined) return await isAloneByList(container);
    if (count === 1) return true;
  }
  return false;
}

/**
 * Prevents the processes of a container from creating others meanwhile: with a limit of one process each
 * `fork` fails, while the engine can still start commands. Only then is a list of processes reliable: a
 * process that only forks and exits never appears in a list, because the engine collects ids first and
 * inspects them later. (Pausing would also work, but some processes can never be frozen: engine 20.10 then
 * waits forever and locks the container.) Three round trips.
 */
async function isAloneByList(container: RunningContainer): Promise<boolean> {
  const { port, id, pids, memoryBytes } = container;
  await port.containers.limitProcesses(id, { pids: 1, memoryBytes });
  await using lifted = new AsyncDisposableStack();
  lifted.defer(() => port.containers.limitProcesses(id, { pids, memoryBytes }));
  return (await processesByEngine(container))?.length === 0;
}

async function restart(container: RunningContainer): Promise<void> {
  const { id } = container;
  const { containers } = container.port;
  container.restarts++;
  container.hostFacts = undefined;
  // A new control group counts from 0.
  container.oomKills = undefined;
  // Otherwise it begins with the container's shell, which processes in it may have replaced.
  container.canEndItself ||= container.own === undefined;
  await unlessEnded(container, containers.kill(id));
  try {
    await containers.start(id);
    container.restarts++;
  } catch (thrown) {
    if (isEngineFailure(thrown, 'connection')) throw thrown;
    container.isLost = true;
    throw containerDamaged('The container does not start again.', thrown);
  }
}

/**
 * The result of a request; undefined if it failed because the container does not run. Engines answer that in
 * several ways, or break off.
 */
async function unlessEnded<T>(container: RunningContainer, request: Promise<T>): Promise<T | undefined> {
  try {
    return await request;
  } catch (thrown) {
    if (await isNotedAsEnded(container)) return undefined;
    throw thrown;
  }
}

function survivors(left: EngineProcess[]): OffsiteError {
  const names = left.map((process) => `${process.command} (${process.pid})`).join(', ');
  return infrastructureError(
    'ENGINE_PROCESS_SURVIVES',
    `Processes in the container survive being killed: ${names}`,
  );
}

const processCount = { controller: 'pids', version1: 'pids.current', version2: 'pids.current' } as const;

/**
 * How many processes and threads the kernel counts in the container, init and zombies among them; undefined
 * if this process cannot see the engine's processes. Unlike a list, it is exact at one moment: it also counts
 * processes that fork and exit all the time. A round trip only the first time.
 */
async function countProcesses(container: RunningContainer): Promise<number | undefined> {
  const count = Number(await readGroupFile(container, processCount));
  return Number.isInteger(count) && count > 0 ? count : undefined;
}

/**
 * Lists the container's processes without init and zombies, for information. Asks the engine first, which is
 * faster than an exec. If the engine cannot list them, an exec reads /proc inside the container, which gives
 * only names and ids of the container, and which an agent that is root can falsify. Command lines are
 * requested only if the caller needs them.
 */
export async function listProcesses(
  container: RunningContainer,
  column: CommandColumn = 'comm',
): Promise<EngineProcess[]> {
  return (await processesByEngine(container, column)) ?? (await listFromInside(container));
}

/**
 * The same list from the engine alone: nothing in the container can falsify it. Undefined if the engine
 * cannot list the container's processes, or lists other ones.
 */
async function processesByEngine(
  container: RunningContainer,
  column: CommandColumn = 'comm',
): Promise<EngineProcess[] | undefined> {
  if (!container.listsProcesses) return undefined;
  const { initPid } = await hostFactsOf(container);
  const listed = await container.port.containers.processes(container.id, column);
  return listed?.filter(({ pid, state }) => pid !== initPid && !state.startsWith('Z'));
}

const listScript = `
for dir in /proc/[0-9]*; do
  pid=\${dir#/proc/}
  [ "$pid" = 1 ] || [ "$pid" = $$ ] && continue
  { read -r stat < "$dir/stat"; } 2>/dev/null || continue
  rest=\${stat##*) }
  case $rest in Z*|X*) continue;; esac
  name=\${stat#*(}
  uid=
  while read -r key value other; do [ "$key" = Uid: ] && uid=$value; done < "$dir/status"
  echo "$pid $uid \${name%)*}"
done`;

async function listFromInside(container: RunningContainer): Promise<EngineProcess[]> {
  const lines = (await runQuietly(container, listScript)).split('\n').filter((line) => line !== '');
  return lines.map((line) => {
    const [pid = '', uid = '', ...name] = line.split(' ');
    return { pid: Number(pid), uid: Number(uid), state: '', command: name.join(' ') };
  });
}
