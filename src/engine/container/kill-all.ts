import { processEnds } from '../../bounds/sandbox.ts';
import { OffsiteError } from '../../offsite-error.ts';
import { runQuietly } from '../exec/run-quietly.ts';
import { containerDamaged } from '../failure.ts';
import { isEngineFailure } from '../port/failure.ts';
import { banForks } from './fork-ban.ts';
import { countProcesses } from './process-count.ts';
import { type ContainerProcess, listProcesses } from './processes.ts';
import type { RunningContainer } from './running-container.ts';

const POLL_MS = 20;
const ALONE_POLL_MS = 3;

/** What it took to be alone: `killed` by signal, or `restarted`, where signals left something alive. */
export type KillAllResult = 'killed' | 'restarted';

/**
 * Ends every process of the container but init, and looks that none is left. Processes of other users are
 * killed as those users, since the container has no CAP_KILL. What survives even that goes with its process
 * namespace: the container is killed and started again, which keeps its files but not its network namespace
 * or /dev/shm. Throws when something is still alive after that, and `ENGINE_CONTAINER_DAMAGED` when the
 * container does not come back.
 */
export async function killAll(container: RunningContainer, signal?: AbortSignal): Promise<KillAllResult> {
  signal?.throwIfAborted();
  if (await killBySignal(container)) return 'killed';
  await restart(container);
  const left = await listProcesses(container);
  if (left.length > 0) throw survivors(left);
  return 'restarted';
}

/**
 * Whether nothing is left alive. Mostly nothing is there to begin with, and a count or a list is all it
 * takes.
 */
async function killBySignal(container: RunningContainer): Promise<boolean> {
  try {
    if (await isAlone(container)) return true;
    await using _ban = await banForks(container);
    if ((await listProcesses(container)).length === 0) return true;
    const until = container.port.clock.now() + processEnds.time.death;
    await runQuietly(container, 'kill -9 -1');
    let left = await waitForDeath(container, processEnds.time.quickDeath);
    // Again and again: with forks banned a command now and then does not start, and its failure looks like
    // its output.
    while (left.length > 0 && container.port.clock.now() < until) {
      for (const uid of new Set(left.map((process) => process.uid)))
        await runQuietly(container, 'kill -9 -1', { user: String(uid) });
      left = await waitForDeath(container, processEnds.time.quickDeath);
    }
    return left.length === 0;
  } catch (thrown) {
    // A container so full, or so damaged, that nothing can be started in it: only a restart helps.
    if (thrown instanceof OffsiteError && !isEngineFailure(thrown, 'connection')) return false;
    throw thrown;
  }
}

/** Whether the kernel counts nobody but init. What just ended may be counted for a moment more. */
async function isAlone(container: RunningContainer): Promise<boolean> {
  for (let look = 0; look < processEnds.count.aloneLooks; look++) {
    if (look > 0) await container.port.clock.sleep(ALONE_POLL_MS);
    const count = await countProcesses(container);
    if (count === undefined) return false;
    if (count === 1) return true;
  }
  return false;
}

/** The processes that are left after `ms` milliseconds, or sooner when none is. */
async function waitForDeath(container: RunningContainer, ms: number): Promise<ContainerProcess[]> {
  const { clock } = container.port;
  const until = clock.now() + ms;
  let left = await listProcesses(container);
  while (left.length > 0 && clock.now() < until) {
    await clock.sleep(POLL_MS);
    left = await listProcesses(container);
  }
  return left;
}

async function restart(container: RunningContainer): Promise<void> {
  const { id } = container;
  const { containers } = container.port;
  container.hostFacts = undefined;
  // A new control group counts from 0.
  container.oomKills = undefined;
  await containers.kill(id);
  try {
    await containers.start(id);
  } catch (thrown) {
    if (isEngineFailure(thrown, 'connection')) throw thrown;
    throw containerDamaged('The container does not start again.', thrown);
  }
}

function survivors(left: ContainerProcess[]): OffsiteError {
  const names = left.map((process) => `${process.command} (${process.pid})`).join(', ');
  return new OffsiteError(`Processes in the container survive being killed: ${names}`, {
    code: 'ENGINE_PROCESS_SURVIVES',
    kind: 'infrastructure',
  });
}
