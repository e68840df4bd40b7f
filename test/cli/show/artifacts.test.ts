import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { badName, writeArtifacts } from '../../../src/cli/commands/artifacts.ts';
import { openPlace } from '../place.ts';

const content = (path: string) => Buffer.from(`content of ${path}`);
const artifact = (path: string) => ({ path, byteSize: 1, sha256: path, blob: '' });

function write(folder: string, paths: string[], force = false): Record<string, string> {
  const written = writeArtifacts(paths.map(artifact), folder, { force, read: content });
  return Object.fromEntries(written.map((one) => [one.path, 'file' in one ? 'written' : one.refused]));
}

test('artifacts are written below the folder, under their names', () => {
  using place = openPlace();
  const out = join(place.folder, 'new', 'out');
  expect(write(out, ['a', 'b/c.txt', 'b/d/..e', ' space', 'aux'])).toEqual({
    a: 'written',
    'b/c.txt': 'written',
    'b/d/..e': 'written',
    ' space': 'written',
    aux: 'written',
  });
  expect(readFileSync(join(out, 'b/c.txt'), 'utf8')).toBe('content of b/c.txt');
});

test('no name leads out of the folder, and the others are written', () => {
  using place = openPlace();
  const out = join(place.folder, 'out');
  const paths = ['../up', 'a/../../up', '/abs', 'nul\0', 'a//b', './a', '..', '.', '', 'fine'];
  const { fine, ...refused } = write(out, paths);
  expect(fine).toBe('written');
  for (const [path, why] of Object.entries(refused)) expect(why, path).toMatch(/^its name /);
  expect(readdirSync(place.folder)).toEqual(['out']);
  expect(readdirSync(out)).toEqual(['fine']);
});

test('links in the folder are not followed', () => {
  using place = openPlace();
  const out = join(place.folder, 'out');
  mkdirSync(join(place.folder, 'elsewhere'));
  mkdirSync(out);
  symlinkSync('../elsewhere', join(out, 'linked'));
  symlinkSync('../elsewhere/target', join(out, 'file'));
  const written = write(out, ['linked/x', 'file'], true);
  expect(written['linked/x']).toMatch(/linked is a link$/);
  expect(readdirSync(join(place.folder, 'elsewhere'))).toEqual([]);
  expect(readFileSync(join(out, 'file'), 'utf8')).toBe('content of file');
});

test('nothing is replaced without force, and a folder never is', () => {
  using place = openPlace();
  const out = join(place.folder, 'out');
  mkdirSync(join(out, 'folder'), { recursive: true });
  writeFileSync(join(out, 'mine'), 'mine');
  const paths = ['mine', 'folder', 'mine/below'];
  expect(write(out, paths)).toMatchObject({ mine: expect.stringMatching(/exists; --force replaces it/) });
  expect(readFileSync(join(out, 'mine'), 'utf8')).toBe('mine');
  const forced = write(out, paths, true);
  expect(forced).toMatchObject({ mine: 'written', folder: expect.stringMatching(/is a folder/) });
  expect(forced['mine/below']).toMatch(/mine is a file/);
});

test('a name that the disk takes for that of another artifact does not replace it, even with force', () => {
  using place = openPlace();
  const out = join(place.folder, 'out');
  const both = write(out, ['Makefile', 'makefile', 'same', 'same'], true);
  expect(both.same).toMatch(/takes its name for that of same/);
  const isFolding = existsSync(join(out, 'MAKEFILE'));
  expect(both.makefile).toMatch(isFolding ? /for that of Makefile/ : /^written$/);
  expect(readFileSync(join(out, 'Makefile'), 'utf8')).toBe('content of Makefile');
});

/** The files of a repository that make `git status` in its folder run a command. */
function trappedRepository(folder: string, worktree: string, mark: string): Map<string, string> {
  const config = [
    '[core]',
    'repositoryformatversion = 0',
    'bare = false',
    `worktree = ${worktree}`,
    `fsmonitor = "touch ${mark}; false"`,
  ];
  return new Map([
    [join(folder, 'HEAD'), 'ref: refs/heads/main\n'],
    [join(folder, 'config'), config.join('\n')],
    [join(folder, 'objects/x'), ''],
    [join(folder, 'refs/x'), ''],
  ]);
}

/** Asks git for the status in each folder. */
function statusBelow(root: string): void {
  const below = readdirSync(root, { recursive: true, withFileTypes: true });
  const folders = below.filter((entry) => entry.isDirectory());
  for (const cwd of [root, ...folders.map(({ parentPath, name }) => join(parentPath, name))])
    spawnSync('git', ['status'], { cwd });
}

test.each(['.', 'bare', 'a/b', '.git', 'a/.git'])('git obeys no repository among artifacts: %s', (where) => {
  using place = openPlace();
  const out = join(place.folder, 'out');
  const mark = join(place.folder, 'ran');
  const files = trappedRepository(where, place.folder, mark);
  for (const [path, text] of files) place.write(`trap/${path}`, text);
  statusBelow(join(place.folder, 'project/trap'));
  expect(existsSync(mark), 'the trap works where all of it is written').toBe(true);
  rmSync(mark);
  const read = (path: string) => Buffer.from(files.get(path) ?? '');
  const written = writeArtifacts([...files.keys(), 'fine'].map(artifact), out, { force: true, read });
  expect(written[0]).toMatchObject({ refused: expect.stringMatching(/repository$/) });
  expect(written.at(-1)).toHaveProperty('file');
  statusBelow(out);
  expect(existsSync(mark)).toBe(false);
});

test('artifacts do not complete a repository of which the folder has the beginning', () => {
  using place = openPlace();
  const out = join(place.folder, 'out');
  mkdirSync(join(out, 'a'), { recursive: true });
  writeFileSync(join(out, 'a/HEAD'), 'ref: refs/heads/main\n');
  const written = write(out, ['a/config', 'a/objects/x', 'b/c', 'HEADS', 'c/HEAD/x']);
  expect(written).toMatchObject({ 'b/c': 'written', HEADS: 'written', 'c/HEAD/x': 'written' });
  for (const path of ['a/config', 'a/objects/x']) expect(written[path]).toMatch(/bare repository$/);
});

test('names that some disk takes for those of a repository are refused', () => {
  for (const name of ['.git', '.GIT', '.git.', '.git . ', 'git~1', 'GIT~2', '.g\u200cit', '.git\ufeff'])
    expect(badName(`a/${name}/config`), name).toMatch(/repository$/);
  for (const name of ['.git::$INDEX_ALLOCATION', '.hg', '.svn', '.jj', '_darcs'])
    expect(badName(`${name}/x`), name).toMatch(/repository$/);
  for (const name of ['head', 'HE\u200dAD', 'HEAD.', 'a/HEAD::$DATA']) expect(badName(name)).toMatch(/bare/);
  for (const name of ['.github/x', '.gitignore', 'git', 'git~', 'heads', 'HEAD.md'])
    expect(badName(name), name).toBeUndefined();
});
