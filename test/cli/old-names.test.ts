import { describe, expect, test } from 'vitest';
import { newName, oldNames } from '../../src/cli/old-names.ts';
import { place, sharedPlace } from './each-place.ts';
import { offsiteHere } from './offsite.ts';

sharedPlace();

const bare = (args: readonly string[]) => offsiteHere(place, [...args], { dataFolder: null });

describe('an old name of a command', () => {
  test.each([
    [['batches'], ['data', 'batches']],
    [
      ['images', 'prune', '--older-than', 'never'],
      ['engine', 'images', 'prune', '--older-than', 'never'],
    ],
    [
      ['runs', 'a', '--json'],
      ['service', 'runs', 'a', '--json'],
    ],
  ])('`%j` does what `%j` does, and says so on stderr', async (old, now) => {
    const [was, is] = await Promise.all([bare(old), bare(now)]);
    const [first, ...rest] = was.stderr.split('\n');
    const name = now.slice(0, 2).join(' ');
    expect(first).toBe(
      `\`offsite ${old[0]}\` is now \`offsite ${name}\`; the next release has only the new name`,
    );
    expect({ ...was, stderr: rest.join('\n') }).toEqual(is);
  });

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
