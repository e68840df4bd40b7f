import { runQuietly } from '../exec/run-quietly.ts';
import type { CommandColumn, EngineProcess } from '../port/containers.ts';
import { hostFactsOf, type RunningContainer } from './running-container.ts';

/**
 * `pid` is that of the engine's machine if the engine lists processes, otherwise the container's.
 */
export type ContainerProcess = Omit<EngineProcess, 'state'>;

/**
 * Lists the container's processes without init and zombies, for information. Asks the engine first, which is
 * faster than an exec. If the engine cannot list them, an exec reads /proc inside the container, which gives
 * only names, and which an agent that is root can falsify. Command lines are requested only if the caller
 * needs them.
 */
export async function listProcesses(
  container: RunningContainer,
  column: CommandColumn = 'comm',
): Promise<ContainerProcess[]> {
  return (await processesByEngine(container, column)) ?? (await listFromInside(container));
}

/**
 * The same list from the engine alone: nothing in the container can falsify it. Undefined if the engine
 * cannot list the container's processes, or lists other ones.
 */
export async function processesByEngine(
  container: RunningContainer,
  column: CommandColumn = 'comm',
): Promise<ContainerProcess[] | undefined> {
  if (!container.listsProcesses) return undefined;
  const { initPid } = await hostFactsOf(container);
  const listed = await container.port.containers.processes(container.id, column);
  return listed
    ?.filter(({ pid, state }) => pid !== initPid && !state.startsWith('Z'))
    .map(({ pid, uid, command }) => ({ pid, uid, command }));
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

async function listFromInside(container: RunningContainer): Promise<ContainerProcess[]> {
  const lines = (await runQuietly(container, listScript)).split('\n').filter((line) => line !== '');
  return lines.map((line) => {
    const [pid = '', uid = '', ...name] = line.split(' ');
    return { pid: Number(pid), uid: Number(uid), command: name.join(' ') };
  });
}
