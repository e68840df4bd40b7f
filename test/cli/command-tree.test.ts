import type { Command } from '@commander-js/extra-typings';
import { expect, test } from 'vitest';
import { commands, commandTrees } from '../../src/cli/command-list.ts';
import { askedHelp, type CommandTree, placeholderCommand } from '../../src/cli/command-tree.ts';

/** As the bundle has them: written as JSON. */
const trees: CommandTree[] = JSON.parse(JSON.stringify(await commandTrees()));

/** The help of a command and of all below it, by their names. */
function helpOf(command: Command, above = ''): [string, string][] {
  const name = `${above}${command.name()}`;
  return [
    [name, command.helpInformation()],
    ...command.commands.flatMap((inner) => helpOf(inner as Command, `${name} `)),
  ];
}

test('the help of each command is the same without its code', async () => {
  const real = (await commands()).flatMap((each) => helpOf(each));
  const placeholders = trees.map(placeholderCommand).flatMap((each) => helpOf(each));
  expect(Object.fromEntries(placeholders)).toEqual(Object.fromEntries(real));
  expect(real.length).toBeGreaterThan(60);
});

test.each([
  ['run --help', 'run'],
  ['data outbox send --help', 'data'],
  ['fleet run -h', 'fleet'],
  ['run suite.yaml --help', undefined],
  ['run --concurrency --help', undefined],
  ['run -- --help', undefined],
  ['fleet nothing --help', undefined],
  ['nothing --help', undefined],
  ['--help', undefined],
  ['help', undefined],
])('`%s` asks only for help: %s', (line, name) => {
  expect(askedHelp(line.split(' '), trees)?.name).toBe(name);
});
