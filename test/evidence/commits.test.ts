import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { hasKeyIn, packOf, unpackCommit } from '../../src/evidence/statement.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import { sourceEntries } from '../../src/suite/git/commit-files.ts';
import { fetchCommit } from '../../src/suite/git/kept-commits.ts';

const reading = { env: process.env, signal: new AbortController().signal };

/** A repository with two commits, the last of which is fetched. */
async function fetchedIn(folder: string) {
  const path = join(folder, 'project');
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', path, '-c', 'user.name=a', '-c', 'user.email=a@b', ...args]);
  execFileSync('git', ['init', '--quiet', path]);
  const ids = ['one', 'two of KEY-123456'].map((text) => {
    writeFileSync(join(path, 'a.txt'), text);
    git('add', '.');
    git('commit', '--quiet', '-m', 'change');
    return git('rev-parse', 'HEAD').toString().trim();
  });
  const parts = { ...reading, folder: join(folder, 'kept'), withCredentials: false };
  const fetched = await fetchCommit({ kind: 'local', path }, undefined, parts);
  return { ...fetched, pack: packOf(fetched.repository) ?? '', earlier: ids[0] ?? '' };
}

test('a commit of the evidence gives the workspace that it gave its owner', async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'offsite-commits-'));
  const { commit, pack, repository } = await fetchedIn(place.path);
  const made = join(place.path, 'made');
  await unpackCommit(commit, { pack, repository: made }, reading);
  const entries = (from: string) => {
    const source = { url: 'x', ref: undefined, commit, history: 'none' as const, repository: from };
    return Array.fromAsync(sourceEntries(source, reading.env, reading.signal));
  };
  expect(await entries(made)).toEqual(await entries(repository));
  const status = execFileSync('git', [`--git-dir=${made}`, 'log', '--format=%H', 'main'], {
    encoding: 'utf8',
  });
  expect(status.trim()).toBe(commit);
});

test('a pack that lacks the commit, or is none, makes no repository', async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'offsite-commits-'));
  const { commit, pack, earlier } = await fetchedIn(place.path);
  const repository = join(place.path, 'made');
  await expect(unpackCommit(earlier, { pack, repository }, reading)).rejects.toThrow('git said: ');
  const broken = join(place.path, 'broken');
  writeFileSync(broken, 'PACK and no more');
  await expect(unpackCommit(commit, { pack: broken, repository }, reading)).rejects.toThrow('git said: ');
  expect(existsSync(repository)).toBe(false);
});

test('a key in a file of a commit is found although its pack compresses it', async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'offsite-commits-'));
  const { commit, repository } = await fetchedIn(place.path);
  const finds = (secret: string) =>
    hasKeyIn(commit, repository, { ...reading, redactor: new Redactor([secret]) });
  expect(await finds('KEY-123456')).toBe(true);
  expect(await finds('KEY-654321')).toBe(false);
});
