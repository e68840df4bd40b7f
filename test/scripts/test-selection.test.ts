import { expect, test } from 'vitest';
import { testSelection } from '../../scripts/test-selection.ts';

const short = ['--exclude=**/*.long.test.ts', '--no-isolate'];

test.each([
  [[], short, true],
  [['--reporter=verbose'], ['--reporter=verbose', ...short], true],
  [['-t', 'a word'], ['-t', 'a word', ...short], true],
  [['--all'], [], false],
  [['--all', '-t', 'a word'], ['-t', 'a word'], false],
  [['test/cli/replay'], ['test/cli/replay'], false],
  [['test'], ['test'], false],
])('npm test -- %j runs vitest with %j', (args, vitestArgs, isShort) => {
  expect(testSelection(args)).toEqual({ vitestArgs, isShort });
});
