import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { tarEntries } from '../archive/tar-entries.ts';
import { tarArchive } from '../archive/write-archive.ts';
import type { OpenExec, OpenTerminal } from '../port/containers.ts';
import {
  type ConformanceCheck,
  failsAs,
  holds,
  killed,
  NotChecked,
  same,
  type Testbed,
  Unmet,
} from './testbed.ts';

/** An archive of one folder, with entries that an engine may get wrong. */
function archive(): Readable {
  return tarArchive([
    { path: 'made', folder: true, mode: 0o1750, uid: 1234, gid: 4321 },
    { path: 'made/file', mode: 0o6755, uid: 1234, gid: 4321, content: 'content' },
    { path: 'made/link', linkTarget: '/etc/shadow' },
    { path: `made/${'long '.repeat(30)}ü`, content: 'long' },
  ]);
}

/** What `find` prints about it: kind, mode, owner, link target, name. */
const look = "cd /made && find . -printf '%y %m %U:%G %l %f\\n' | sort";
const asMade = [
  'd 1750 1234:4321  .',
  `f 644 0:0  ${'long '.repeat(30)}ü`,
  'f 6755 1234:4321  file',
  'l 777 0:0 /etc/shadow link',
].sort();

/** Files that go into and out of containers, and how they are changed there. */
export const fileChecks: readonly ConformanceCheck[] = [
  {
    name: 'unpacks an archive with modes, owners, links and long names, before a start and after it',
    cost: 'Workspaces, protected files and validators arrive changed.',
    async run({ port: { containers }, create }) {
      await using container = await create({ capabilities: ['DAC_OVERRIDE', 'FOWNER'] });
      await containers.putArchive(container.id, '/', archive());
      await containers.start(container.id);
      same('what was unpacked before the start', linesOf((await container.shell(look)).stdout), asMade);
      await container.prepare('rm -r /made');
      await containers.putArchive(container.id, '/', archive());
      same('what was unpacked after it', linesOf((await container.shell(look)).stdout), asMade);
    },
  },
  {
    name: 'archives a folder with modes, owners and links, without following links',
    cost: 'The copy that is graded is not what the agent left.',
    async run({ port: { containers }, start }) {
      await using container = await start();
      await containers.putArchive(container.id, '/', archive());
      const read = await containers.getArchive(container.id, '/made', undefined, { owners: true });
      const seen: string[] = [];
      for await (const { header, content } of tarEntries(read)) {
        const { name, flag, mode, uid, gid, linkName } = header;
        const text = Buffer.concat([linkName, ...(await Array.fromAsync(content()))]);
        seen.push(`${String(name).replace(/\/$/, '')} ${flag} ${mode.toString(8)} ${uid}:${gid} ${text}`);
      }
      same(
        'what was archived',
        seen.sort(),
        [
          'made 5 1750 1234:4321 ',
          'made/file 0 6755 1234:4321 content',
          'made/link 2 777 0:0 /etc/shadow',
          `made/${'long '.repeat(30)}ü 0 644 0:0 long`,
        ].sort(),
      );
    },
  },
  {
    name: 'archives files with their times, and rounds none up',
    cost: 'In the copy that is graded, git reports unchanged files as changed.',
    async run({ port: { containers }, start }) {
      await using container = await start();
      await container.prepare(
        'mkdir /opt/times && cd /opt/times && touch -d @1000000000.9 late && touch -d @1000000000.1 early',
      );
      const read = await containers.getArchive(container.id, '/opt/times', undefined, { owners: true });
      const seen: string[] = [];
      for await (const { header } of tarEntries(read)) {
        const { name, flag, modifiedAt } = header;
        if (flag === '0') seen.push(`${name} ${Math.floor(modifiedAt / 1000)}`);
      }
      same('the files and their times', seen.toSorted(), ['times/early 1000000000', 'times/late 1000000000']);
    },
  },
  {
    name: 'distinguishes a folder, another file and a missing path without reading them',
    cost: 'A missing workspace looks like an empty one.',
    async run({ port: { containers }, start }) {
      await using container = await start();
      await container.prepare('ln -s /usr /opt/link');
      same('whether /usr is a folder', await containers.isFolder(container.id, '/usr'), true);
      same('whether a link to it is', await containers.isFolder(container.id, '/opt/link'), false);
      await failsAs('a look at nothing', 'not-found', containers.isFolder(container.id, '/no/such'));
      await failsAs('reading nothing', 'not-found', containers.getArchive(container.id, '/no/such'));
    },
  },
  {
    name: 'lists what a container added, changed and deleted',
    cost: 'Changes that an agent made outside its workspace are missed.',
    async run({ port: { containers }, start }) {
      await using container = await start();
      await container.shell('echo new > /opt/added; echo new >> /etc/profile; rm /etc/debian_version');
      const seen: string[] = [];
      for await (const { kind, path } of containers.changes(container.id)) seen.push(`${kind} ${path}`);
      same('the list', seen.sort(), [
        'added /opt/added',
        'deleted /etc/debian_version',
        'modified /etc',
        'modified /etc/profile',
        'modified /opt',
      ]);
    },
  },
  {
    name: 'reports when a container was created, by the clock of its files',
    cost: 'If the disk cannot be read, changes that an agent made are missed.',
    async run({ port: { containers }, start }) {
      await using container = await start();
      await container.prepare('touch /opt/now');
      const changedAt = Number((await container.shell('stat -c %.3Z /opt/now')).stdout) * 1000;
      const { createdAt } = await containers.state(container.id);
      const after = changedAt - createdAt;
      holds(
        after > 0 && after < 60_000,
        `a file of now was changed ${after} ms after the container was made`,
      );
    },
  },
  {
    name: 'keeps what a container wrote in a separate folder',
    cost: 'Grading asks the engine what changed, which takes seconds for a large image.',
    async run({ port: { containers }, start }) {
      await using container = await start();
      const { layer } = await containers.state(container.id);
      if (layer === undefined) throw new NotChecked('it reports none; Offsite asks the engine instead');
      if (!existsSync(layer)) throw new NotChecked('its disk is unreadable; Offsite asks the engine instead');
      await container.prepare('echo new > /opt/added');
      same('whether a new file is in it', existsSync(join(layer, 'opt/added')), true);
    },
  },
];

function linesOf(text: string): string[] {
  return text.trimEnd().split('\n').sort();
}

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
