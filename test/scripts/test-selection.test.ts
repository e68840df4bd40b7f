import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commitNumber, longPart, testSelection } from '../../scripts/test-selection.ts';
import { makeRepository } from '../suite/git/repository.ts';

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
  expect(testSelection(args)).toEqual({ vitestArgs, isShort, hasLongPart: false });
});

test('a part of the long tests runs after the short ones, and five commits in a row run all of them', () => {
  expect(testSelection(['--long-part'])).toEqual({ vitestArgs: short, isShort: true, hasLongPart: true });
  const files = ['g', 'f', 'e', 'd', 'c', 'b', 'a'];
  const parts = [1604, 1605, 1606, 1607, 1608].map((commits) => longPart(commits, files).files);
  expect(parts.map((part) => part.length).toSorted()).toEqual([1, 1, 1, 2, 2]);
  expect(parts.flat().toSorted()).toEqual(files.toSorted());
  // What takes longest is in a part with less beside it.
  const slow = 'test/gateway/real-servers/real-servers.long.test.ts';
  const many = [slow, ...Array.from({ length: 100 }, (_, n) => `test/${n}.long.test.ts`)];
  const [withIt = 0, ...others] = [0, 1, 2, 3, 4]
    .map((commits) => longPart(commits, many).files.length)
    .toSorted((a, b) => a - b);
  for (const length of others) expect(length).toBeGreaterThan(withIt + 15);
});

test('a part is the same in each run of a commit, and another one for the next commit', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-commits-'));
  expect(commitNumber(folder.path)).toBe(0);
  const repository = makeRepository(join(folder.path, 'whole'));
  const numbers = ['a', 'b', 'c'].map((content) => {
    repository.commit({ file: content });
    return commitNumber(repository.path);
  });
  expect(numbers).toEqual([1, 2, 3]);
  // CI often fetches no history.
  const shallow = ['d', 'e'].map((name) => {
    const clone = join(folder.path, name);
    repository.git('clone', '--quiet', '--depth=1', `file://${repository.path}`, clone);
    return commitNumber(clone);
  });
  const id = repository.git('rev-parse', 'HEAD');
  expect(shallow).toEqual([shallow[0], Number.parseInt(id.slice(0, 8), 16)]);
});
