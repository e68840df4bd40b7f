import type { RunningContainer } from './running-container.ts';

/**
 * Prevents the processes of a container from creating others, until disposed: with a limit of one process
 * each `fork` fails, while the engine can still start commands. Only then is a list of processes reliable: a
 * process that only forks and exits never appears in a list, because the engine collects ids first and
 * inspects them later. (Pausing would also work, but some processes can never be frozen: engine 20.10 then
 * waits forever and locks the container.) Two round trips.
 */
export async function banForks({ port, id, pids, memoryBytes }: RunningContainer): Promise<AsyncDisposable> {
  const limit = (processes: number) => port.containers.limitProcesses(id, { pids: processes, memoryBytes });
  await limit(1);
  return { [Symbol.asyncDispose]: () => limit(pids) };
}
