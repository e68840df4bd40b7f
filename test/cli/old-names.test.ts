import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newName, oldNames } from '../../src/cli/old-names.ts';
import { someOf } from '../short-tests.ts';
import { offsite } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

let place: Place;
let suite: string;
beforeAll(() => {
  place = openPlace();
  suite = place.suite({ cases: [{ id: 'a', verify: 'true' }] });
});
afterAll(() => place?.[Symbol.dispose]());

const bare = (args: readonly string[]) => offsite(place, [...args], { dataFolder: null });
const inPlace = (args: readonly string[]) => offsite(place, [...args]);

/** For each old name, what it is given, so that it comes as far as its own work. */
const lines: Record<string, () => { args: string[]; run?: typeof bare }> = {
  start: () => ({ args: [suite, '--variant', 'none'] }),
  abandon: () => ({ args: ['batch_x'] }),
  fork: () => ({ args: ['a#0', '--at', '1', '--model', 'm'] }),
  batches: () => ({ args: [] }),
  artifacts: () => ({ args: ['a#0', '--json'] }),
  shell: () => ({ args: ['a#0', '--', 'ls', '--help'] }),
  regrade: () => ({ args: ['batch_x'] }),
  tasks: () => ({ args: [place.folder, '--json'], run: bare }),
  import: () => ({ args: ['harbor', place.folder, '--out', 'out', '--variant', 'bash:m'] }),
  enqueue: () => ({ args: ['gone.yaml'] }),
  status: () => ({ args: ['--json'] }),
  pause: () => ({ args: [] }),
  unpause: () => ({ args: [] }),
  drain: () => ({ args: [] }),
  cancel: () => ({ args: ['run_x'] }),
  concurrency: () => ({ args: ['0'] }),
  outbox: () => ({ args: ['list', '--json'] }),
  ledger: () => ({ args: ['check', '--json'] }),
  'base-image': () => ({ args: ['--python', '1'], run: bare }),
  clean: () => ({ args: ['--help'], run: bare }),
  images: () => ({ args: ['prune', '--older-than', 'never'], run: bare }),
  whoami: () => ({ args: ['--json'] }),
  integrations: () => ({ args: ['--json'] }),
  cases: () => ({ args: [] }),
  runs: () => ({ args: ['a', '--json'] }),
  rerun: () => ({ args: ['batch_x', 'a:b'] }),
  prompts: () => ({ args: ['get', 'p'] }),
  keys: () => ({ args: ['list', '--json'] }),
};

describe('an old name of a command', () => {
  test.concurrent.each(someOf(Object.entries(oldNames)))(
    '`%s` does what `%s` does, and says so on stderr',
    { timeout: 60_000 },
    async (old, name) => {
      const { args, run = inPlace } = lines[old]?.() ?? expect.fail(`no line for ${old}`);
      const was = await run([old, ...args]);
      const is = await run([...name.split(' '), ...args]);
      const [first, ...rest] = was.stderr.split('\n');
      expect(first).toBe(
        `\`offsite ${old}\` is now \`offsite ${name}\`; the next release has only the new name`,
      );
      expect({ ...was, stderr: rest.join('\n') }).toEqual(is);
      expect(`${is.stdout}${is.stderr}`).not.toMatch(/unknown (command|option)/);
    },
  );

  test('asks for the help of the new one', async () => {
    const { stdout, stderr } = await bare(['help', 'outbox', 'send']);
    expect(stdout).toMatch(/^Usage: offsite data outbox send /);
    expect(stderr).toMatch(/^`offsite outbox` is now `offsite data outbox`;.*\n$/);
  });

  test.each([
    'tasks',
    'tasks list',
    'tasks import',
    'tasks --help',
    'tasks help',
    'resume',
    'daemon',
    'data',
  ])('is none of `%s`', (line) => expect(newName(line.split(' '))).toBeUndefined());
});

test.each(['trial', 'tasks', 'service', 'data', 'engine'])(
  'offsite %s lists the commands below it',
  async (noun) => {
    const { stdout, stderr, exitCode } = await bare([noun]);
    expect([stderr, exitCode]).toEqual(['', 0]);
    const [, list = ''] = stdout.split('Commands:\n');
    const listed = [...list.matchAll(/^ {2}(\S+)/gm)].map(([, name]) => `${noun} ${name}`);
    const known = Object.values(oldNames).filter((name) => name.startsWith(`${noun} `));
    expect(listed).toEqual(expect.arrayContaining(known));
  },
);

test('an option of the command above, before the name of a command, is not ignored', async () => {
  const { stderr, exitCode } = await bare(['daemon', '--data-folder', 'x', 'pause']);
  expect(exitCode).toBe(2);
  expect(stderr).toContain("'--data-folder' must stand after 'pause'");
});
