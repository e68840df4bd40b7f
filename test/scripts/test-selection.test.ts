import { expect, test } from 'vitest';
import { testSelection } from '../../scripts/test-selection.ts';

const exclude = '--exclude=**/*.long.test.ts';

test.each([
  [[], [exclude], true],
  [['--reporter=verbose'], ['--reporter=verbose', exclude], true],
  [['-t', 'a word'], ['-t', 'a word', exclude], true],
  [['--all'], [], false],
  [['--all', '-t', 'a word'], ['-t', 'a word'], false],
  [['test/cli/replay'], ['test/cli/replay'], false],
  [['test'], ['test'], false],
])('npm test -- %j runs vitest with %j', (args, vitestArgs, isShort) => {
  expect(testSelection(args)).toEqual({ vitestArgs, isShort });
});
