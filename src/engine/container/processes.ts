import { runQuietly } from '../exec/run-quietly.ts';
import { engineStatus } from '../failure.ts';
import { hostFactsOf } from './host-facts.ts';
import type { RunningContainer } from './running-container.ts';

export interface ContainerProcess {
  /** In the engine host's numbering where the engine's `ps` answered, else in the container's. */
  pid: number;
  /** User id in the same numbering. */
  uid: number;
  /** Its command line, or the name of its program; see {@link Told}. */
  command: string;
}

/** `comm`: at most 15 bytes of a program's name, as the kernel has it. `args`: its command line, of which it may have made megabytes. */
type Told = 'args' | 'comm';

/**
 * Lists what runs beside the container's own init, zombies left out. The engine's `top` is asked first: it is
 * quicker than an exec and nothing in the container can lie to it. Engines without `ps` answer with an error; there
 * /proc is read from inside, which tells names alone. Where nobody looks at command lines, they are not asked for.
 */
export async function listProcesses(
  container: RunningContainer,
  told: Told = 'comm',
): Promise<ContainerProcess[]> {
  try {
    return await listThroughEngine(container, told);
  } catch (thrown) {
    if (engineStatus((thrown as { cause?: unknown }).cause) !== 500) throw thrown;
    return await listFromInside(container);
  }
}

async function listThroughEngine(container: RunningContainer, told: Told): Promise<ContainerProcess[]> {
  const { client, id } = container;
  const { initPid } = await hostFactsOf(container);
  const answer = await client.call('listing processes', (abortSignal) =>
    client.docker.getContainer(id).top({ ps_args: `-eo pid,uid,stat,${told}`, abortSignal }),
  );
  return (answer.Processes as string[][])
    .map(([pid, uid, state = '', command = '']) => ({ pid: Number(pid), uid: Number(uid), state, command }))
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
