import { once } from 'node:events';
import type { OpenExec, OpenTerminal } from '../port/exec.ts';
import type { ConformanceCheck } from './check.ts';
import { failsAs, holds, killed, same, type Testbed, Unmet } from './testbed.ts';

/** Running commands in a container. */
export const commandChecks: readonly ConformanceCheck[] = [
  {
    name: 'reports the exit code of each command',
    cost: 'Failed checks count as passed, or passed ones as failed.',
    async run(testbed) {
      await using container = await testbed.start();
      for (const code of [0, 7]) {
        same('the exit code', (await container.shell(`exit ${code}`)).exitCode, code);
      }
      same('the exit code of a killed command', (await container.shell('kill -9 $$')).exitCode, killed);
    },
  },
  {
    name: 'runs a command with the usual umask',
    cost: 'Every user of a sandbox can change the files that a command makes.',
    async run(testbed) {
      await using container = await testbed.start();
      same('the umask', (await container.shell('umask')).stdout, '0022\n');
    },
  },
  {
    name: 'passes on all output, with standard output and standard error apart',
    cost: 'What harnesses say is cut or mixed up, so turns and commands are lost.',
    async run(testbed) {
      await using container = await testbed.start();
      const bytes = 3_000_000;
      const ran = await container.shell(`echo wrong >&2; head -c ${bytes} /dev/zero | tr '\\0' x`);
      same('the length of standard output', ran.stdout.length, bytes);
      same('standard error', ran.stderr, 'wrong\n');
    },
  },
  {
    name: 'gives a command its input and ends it there',
    cost: 'Scripts and prompts never arrive, and commands wait for more input until they time out.',
    async run(testbed) {
      await using container = await testbed.start();
      same('what came back', (await container.shell('cat', { stdin: 'given' })).stdout, 'given');
      same('what is read without input', (await container.shell('cat')).stdout, '');
    },
  },
  {
    name: 'runs a command with the requested user, folder and environment',
    cost: 'Validators run as the wrong user, and harnesses without their settings.',
    async run(testbed) {
      await using container = await testbed.start();
      const script = 'echo "$(id -u):$(id -g) $(pwd) $WORD"';
      const more = { user: '1234:4321', cwd: '/usr/lib', env: { WORD: 'a = "b"' } };
      same(
        'what the command sees',
        (await container.shell(script, more)).stdout,
        '1234:4321 /usr/lib a = "b"\n',
      );
    },
  },
  {
    name: 'says when it cannot start a command',
    cost: 'A missing program looks like a command that failed.',
    async run(testbed) {
      await using container = await testbed.start();
      const ran = await container.shell('', { argv: ['/no/such/program'] });
      same('whether a missing program was started', !ran.neverStarted, false);
    },
  },
  {
    name: 'refuses commands in a container that does not run',
    cost: 'A container that was killed from outside looks like a harness that failed.',
    async run(testbed) {
      await using container = await testbed.create();
      await failsAs('a command in a container that was never started', 'conflict', container.shell('true'));
    },
  },
  {
    name: 'ends the stream of a command when its container is killed',
    cost: 'Trials wait for containers that are gone until they time out.',
    async run(testbed) {
      await using container = await testbed.start();
      using exec = await sleeping(testbed, container.id);
      await testbed.port.containers.kill(container.id);
      const ended = exec.streamEnded.then(
        () => 'ended',
        () => 'ended',
      );
      const late = testbed.clock.sleep(10_000).then(() => 'open after 10 s');
      same('the stream', await Promise.race([ended, late]), 'ended');
      const { exitCode } = await exec.inspect();
      holds(exitCode !== 0, 'the command that was killed with its container has exit code 0');
    },
  },
  {
    name: 'does not report a command as finished if its stream was cut',
    cost: 'A cut connection turns half a command into a success.',
    async run(testbed) {
      await using container = await testbed.start();
      const exec = await sleeping(testbed, container.id);
      exec[Symbol.dispose]();
      await testbed.clock.sleep(500);
      const { running, exitCode } = await exec.inspect();
      holds(running || exitCode !== 0, 'a command that still slept has ended with exit code 0');
    },
  },
];

/** A command that runs for ten minutes, attached. */
async function sleeping(testbed: Testbed, containerId: string): Promise<OpenExec> {
  const opened = await testbed.port.containers.exec(containerId, {
    argv: ['/bin/sleep', '600'],
    onPiece: () => undefined,
  });
  if (!opened.started) throw new Unmet(opened.message);
  return opened.exec;
}

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
