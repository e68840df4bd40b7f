import { expect, test } from 'vitest';
import { commandTrees } from '../../src/cli/command-tree.ts';
import { readCommandTrees } from '../../src/cli/program.ts';

test('help and completion know what commands take; else: npm run generate', async () => {
  // As JSON has it, without what is undefined.
  expect(commandTrees).toEqual(JSON.parse(JSON.stringify(await readCommandTrees())));
});
