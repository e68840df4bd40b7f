import { runQuietly } from '../exec/run-quietly.ts';
import type { EngineProcess, ToldCommand } from '../port/containers.ts';
import { hostFactsOf } from './host-facts.ts';
import type { RunningContainer } from './running-container.ts';

/** `pid` and `uid` are the engine's machine's where the engine lists processes, else the container's own. */
export type ContainerProcess = Omit<EngineProcess, 'state'>;

/**
 * Lists what runs beside the container's own init, zombies left out. The engine is asked first: it is quicker
 * than an exec and nothing in the container can lie to it. Where it cannot list them, /proc is read from
 * inside, which tells names alone. Where nobody looks at command lines, they are not asked for.
 */
export async function listProcesses(
  container: RunningContainer,
  told: ToldCommand = 'comm',
): Promise<ContainerProcess[]> {
  const { initPid } = await hostFactsOf(container);
  const listed = await container.port.containers.processes(container.id, told);
  if (listed === undefined) return await listFromInside(container);
  return listed
    .filter(({ pid, state }) => pid !== initPid && !state.startsWith('Z'))
    .map(({ pid, uid, command }) => ({ pid, uid, command }));
}

const LIST = `
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
  const lines = (await runQuietly(container, LIST)).split('\n').filter((line) => line !== '');
  return lines.map((line) => {
    const [pid = '', uid = '', ...name] = line.split(' ');
    return { pid: Number(pid), uid: Number(uid), command: name.join(' ') };
  });
}
