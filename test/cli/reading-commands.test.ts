import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commandTrees } from '../../src/cli/command-list.ts';
import type { CommandTree } from '../../src/cli/command-tree.ts';
import { place, sharedPlace } from './each-place.ts';
import { offsiteHere } from './offsite.ts';

sharedPlace();

/** Commands that start something, or that bring something into the data folder: they make it. */
const makers = new Set([
  'quickstart',
  'check',
  'run',
  'resume',
  'import-log',
  'daemon',
  'daemon enqueue',
  'serve',
  'service start',
  'service prompts write',
  'service keys create',
]);

/** These ask systemd, or a server of Temporal, first. */
const ofOthers = /^(daemon (un)?install|fleet\b)/;

/** What a line must have besides its arguments. */
const needed: Readonly<Record<string, string[]>> = {
  'trial fork': ['--at', '1', '--model', 'none'],
  export: ['--csv', '-'],
  'tasks import': ['--out', 'tasks', '--variant', 'command:none'],
  'data prune': ['--older-than', '1d'],
};

function wanted({ arguments: all }: CommandTree): string[] {
  const needs = all.filter(({ term }) => term.startsWith('<'));
  return needs.map(
    ({ term, choices = [] }) => choices[0] ?? (/^<(n|version|id\.\.\.)>/.test(term) ? '1' : 'some'),
  );
}

function leaves(tree: CommandTree, above = ''): [string, CommandTree][] {
  const name = `${above}${tree.name}`;
  return [[name, tree], ...tree.commands.flatMap((below) => leaves(below, `${name} `))];
}

const readers = (await commandTrees())
  .flatMap((tree) => leaves(tree))
  .filter(
    ([name, { options }]) =>
      !makers.has(name) && !ofOthers.test(name) && options.some(({ flags }) => /^--data-folder/.test(flags)),
  );

test('a command that only reads makes no data folder where a name is misspelt', async () => {
  const found: string[] = [];
  for (const [name, tree] of readers) {
    const dataFolder = join(place.folder, name.replaceAll(' ', '-'));
    const args = [...name.split(' '), ...wanted(tree), ...(needed[name] ?? [])];
    const { exitCode, stderr } = await offsiteHere(place, args, { dataFolder });
    if (existsSync(dataFolder) || stderr.includes('with --help'))
      found.push(`${name}: ${exitCode} ${stderr}`);
  }
  expect(found).toEqual([]);
  expect(readers.length).toBeGreaterThan(30);
});
