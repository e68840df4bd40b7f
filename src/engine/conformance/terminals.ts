import { once } from 'node:events';
import type { OpenTerminal } from '../port/terminal.ts';
import type { ConformanceCheck } from './check.ts';
import { same, Unmet } from './expect.ts';

/** Milliseconds that a command on a terminal may take on a very busy machine. */
const patienceMs = 30_000;

/** Waits for keys, says what they were, and prints the terminal's size in between. */
const script = `
read -r _; stty size
read -r line; printf 'line %s\\n' "$line"
stty size
stty raw -echo; printf 'raw\\n'
key=$(head -c 1 | od -An -tx1); stty sane
printf 'key%s\\n' "$key"
exit 7`;

/** Commands on a terminal, for people and for agents. */
export const terminalChecks: readonly ConformanceCheck[] = [
  {
    name: 'runs a command on a terminal, with its keys and its size',
    cost: 'A shell in a sandbox does not open, or draws its lines in the wrong places.',
    async run({ port, start }) {
      await using container = await start();
      const opened = await port.containers.terminal(container.id, {
        argv: ['/bin/sh', '-c', script],
        size: { columns: 91, rows: 23 },
      });
      if (!opened.started) throw new Unmet(opened.message);
      using terminal = opened.terminal;
      const until = screenOf(terminal);
      // Some engines set the size only after the command has begun.
      terminal.stream.write('\r');
      await until('23 91');
      await terminal.resize({ columns: 101, rows: 33 });
      terminal.stream.write('typed\r');
      await until('line typed');
      await until('33 101');
      await until('raw');
      terminal.stream.write('\u0003');
      await until('key 03');
      await once(terminal.stream, 'close', { signal: AbortSignal.timeout(patienceMs) });
      same('the exit code', (await ended(terminal, port.clock.sleep)).exitCode, 7);
    },
  },
  {
    name: 'lets any user open a terminal where devices are protected',
    cost: 'Agents that run commands on terminals of their own, such as Qwen Code, can run none.',
    async run({ start }) {
      await using container = await start({ readOnlyPaths: ['/dev'] });
      const opened = await container.shell('script -qec tty /dev/null < /dev/null', { user: '1000:1000' });
      same('what a command says of its terminal', `${opened.stdout}${opened.stderr}`, '/dev/pts/0\r\n');
    },
  },
];

/** Returns a function that waits until the screen shows a text. */
function screenOf({ stream }: OpenTerminal): (text: string) => Promise<void> {
  let screen = '';
  stream.on('data', (chunk: Buffer) => {
    screen += chunk.toString('latin1');
  });
  return async (text) => {
    const late = AbortSignal.timeout(patienceMs);
    while (!screen.includes(text)) {
      const next = once(stream, 'data', { signal: late });
      await next.catch(() => {
        throw new Unmet(`the terminal shows ${JSON.stringify(screen)}, not ${JSON.stringify(text)}`);
      });
    }
  };
}

async function ended(terminal: OpenTerminal, sleep: (ms: number) => Promise<void>) {
  for (let waited = 0; ; waited += 20) {
    const state = await terminal.inspect();
    if (!state.running || waited > patienceMs) return state;
    await sleep(20);
  }
}
