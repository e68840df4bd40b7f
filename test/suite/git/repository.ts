import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** A repository that a test writes, without any settings of this machine. */
export interface TestRepository {
  path: string;
  git(...args: string[]): string;
  /** Commits files, and returns the id of the commit. */
  commit(files: Record<string, string>): string;
}

export function makeRepository(path: string): TestRepository {
  mkdirSync(path, { recursive: true });
  const env = {
    PATH: process.env.PATH,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
    // Neither waits for the disk, nor starts another git after each commit.
    ...configured({ 'core.fsync': 'none', 'maintenance.auto': 'false' }),
    GIT_AUTHOR_NAME: 'a',
    GIT_AUTHOR_EMAIL: 'a@b',
    GIT_COMMITTER_NAME: 'a',
    GIT_COMMITTER_EMAIL: 'a@b',
  };
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: path, env, stdio: ['ignore', 'pipe', 'pipe'] })
      .toString()
      .trim();
  git('init', '--quiet', '--template=', '--initial-branch=main');
  return {
    path,
    git,
    commit(files) {
      for (const [name, content] of Object.entries(files)) {
        mkdirSync(dirname(join(path, name)), { recursive: true });
        writeFileSync(join(path, name), content);
      }
      git('add', '--all', '--force');
      git('commit', '--quiet', '--allow-empty', '--message', 'a commit');
      return git('rev-parse', 'HEAD');
    },
  };
}

/** The variables that set these keys of git's configuration. */
function configured(keys: Record<string, string>): Record<string, string> {
  const entries = Object.entries(keys).flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(Object.keys(keys).length), ...Object.fromEntries(entries) };
}
