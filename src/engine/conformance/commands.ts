import type { OpenExec } from '../port/exec.ts';
import type { ConformanceCheck } from './check.ts';
import { failsAs, holds, killed, same, Unmet } from './expect.ts';
import type { Testbed } from './testbed.ts';

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
