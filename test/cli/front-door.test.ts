import { execa } from 'execa';
import { describe, expect, test } from 'vitest';
import { commandTrees } from '../../src/cli/command-list.ts';
import { nextStep } from '../../src/cli/program.ts';
import { place, sharedPlace } from './each-place.ts';
import { main, offsiteHere } from './offsite.ts';

sharedPlace();

describe('the help of the whole program', () => {
  test.each([[['--help']], [['-h']], [['help']]])('%j fits on a screen of 80 x 24', async (line) => {
    const { stdout, exitCode } = await offsiteHere(place, line, { dataFolder: null });
    const lines = stdout.trimEnd().split('\n');
    expect(exitCode).toBe(0);
    expect(lines.length).toBeLessThan(24);
    const texts = lines.filter((each) => !each.startsWith('Documents: '));
    expect(Math.max(...texts.map((each) => each.length))).toBeLessThanOrEqual(80);
    const named = lines.flatMap((each) => /^ {2}(\S+) {2}/.exec(each)?.[1] ?? []);
    expect(named.length).toBeGreaterThan(10);
    const known = (await commandTrees()).map(({ name }) => name);
    expect(named.filter((name) => !known.includes(name))).toEqual([]);
  });

  test('lists every command with --all', async () => {
    const { stdout } = await offsiteHere(place, ['help', '--all'], { dataFolder: null });
    for (const { name } of await commandTrees()) expect(stdout).toMatch(new RegExp(`^  ${name}\\b`, 'm'));
  });

  test('says what one would do next in this folder', async () => {
    const { stdout, exitCode } = await offsiteHere(place, [], { dataFolder: null });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/\n\nNext: /);
    expect(nextStep(place.folder)).toContain('offsite quickstart');
    place.write('evals/suite.yaml', 'suite: { id: a, prompt: Do it. }\ncases: []\n');
    expect(nextStep(`${place.folder}/project`)).toBe(
      'Next: offsite check evals/suite.yaml, then offsite run evals/suite.yaml',
    );
  });
});

test('the help of run shows ten options before those under headings', async () => {
  const { stdout } = await offsiteHere(place, ['run', '--help'], { dataFolder: null });
  const [, usual = ''] = /^Options:\n([\s\S]*?)\n\n/m.exec(stdout) ?? [];
  const flags = usual.split('\n').filter((line) => /^ {2}-/.test(line));
  expect(flags).toHaveLength(11);
  const headings = stdout.match(/^Options .*:$/gm) ?? [];
  expect(headings.at(-1)).toBe('Options that few need:');
  expect(headings).toContain('Options for rows of SWE-bench:');
});

test('a folder that was removed is named as what is missing, and help needs none', async () => {
  const gone = 'mkdir "gone$$" && cd "gone$$" && rmdir "../gone$$" && exec "$0" "$@"';
  const run = (...args: string[]) =>
    execa('sh', ['-c', gone, process.execPath, main, ...args], {
      cwd: place.folder,
      extendEnv: false,
      env: { HOME: place.folder, PATH: process.env.PATH },
      reject: false,
    });
  const [show, help, front] = await Promise.all([run('show'), run('--help'), run()]);
  expect([show.exitCode, show.stderr]).toEqual([2, expect.stringContaining('no longer exists: change to')]);
  expect([help.exitCode, front.exitCode]).toEqual([0, 0]);
});
