import type { RunningContainer } from './running-container.ts';

/**
 * Keeps the processes of a container from making others until disposed: at a limit of one process, each
 * `fork` fails, while the engine still can put commands in. Only then does a list of processes tell the
 * truth: one that does nothing but fork and end is in no list, since the engine collects ids first and looks
 * at them afterwards. (Pausing would do as well, were there not processes that can never be frozen: engine
 * 20.10 then waits for ever, holding the container.) Two round trips.
 */
export async function banForks({ port, id, pids }: RunningContainer): Promise<AsyncDisposable> {
  await port.containers.limitProcesses(id, 1);
  return { [Symbol.asyncDispose]: () => port.containers.limitProcesses(id, pids) };
}
