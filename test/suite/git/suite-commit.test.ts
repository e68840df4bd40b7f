import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { commitOf } from '../../../src/suite/git/run-git.ts';

const { signal } = new AbortController();
const env = { PATH: process.env.PATH, HOME: tmpdir() };

function repository() {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-commit-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const author = ['-c', 'user.name=A', '-c', 'user.email=a@b.example'];
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', folder, ...author, ...args], { encoding: 'utf8', env }).trim();
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  mkdirSync(join(folder, 'evals'));
  git('init', '-q');
  return { folder, evals: join(folder, 'evals'), git, write };
}

test('a suite in a repository has its commit, and says whether its own folder changed', async () => {
  const { evals, git, write } = repository();
  expect(await commitOf(evals, { env, signal })).toBeUndefined();
  write('evals/suite.yaml', 'a');
  write('other.txt', 'a');
  git('add', '.');
  git('commit', '-qm', 'first');
  const id = git('rev-parse', 'HEAD');
  expect(await commitOf(evals, { env, signal })).toEqual({ id, dirty: false });
  write('other.txt', 'b');
  expect(await commitOf(evals, { env, signal })).toEqual({ id, dirty: false });
  write('evals/suite.yaml', 'b');
  expect(await commitOf(evals, { env, signal })).toEqual({ id, dirty: true });
  write('evals/suite.yaml', 'a');
  write('evals/new.txt', 'a');
  expect(await commitOf(evals, { env, signal })).toEqual({ id, dirty: true });
});

test('a suite outside a repository has none', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-no-commit-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  expect(await commitOf(folder, { env, signal })).toBeUndefined();
});

test('the question runs no program that the repository names', async () => {
  const { folder, evals, git, write } = repository();
  write('.gitattributes', '* filter=hostile\n');
  write('evals/suite.yaml', 'a');
  git('add', '.');
  git('commit', '-qm', 'first');
  const [ran, included] = [join(folder, 'ran'), join(folder, 'included')];
  git('config', 'filter.hostile.clean', `touch ${ran}; cat`);
  git('config', 'filter.hostile.process', `touch ${ran}`);
  git('config', 'core.fsmonitor', `touch ${ran}`);
  writeFileSync(included, `[filter "hostile"]\n  clean = touch ${ran}; cat\n`);
  git('config', 'include.path', included);
  write('evals/suite.yaml', 'b');
  expect(await commitOf(evals, { env, signal })).toMatchObject({ dirty: true });
  expect(existsSync(ran)).toBe(false);
});
