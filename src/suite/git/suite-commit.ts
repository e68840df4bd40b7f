import { OffsiteError } from '../../base/offsite-error.ts';
import type { SuiteCommit } from '../../record/suite-commit.ts';
import { repositoryAbove } from '../find-config.ts';
import { runGit } from './run-git.ts';

/** Milliseconds that git gets. Results without a commit are better than a run that waits. */
const timeoutMs = 10_000;

/**
 * The commit of the repository that a folder is in, and whether the folder has changes. Undefined if there is
 * no repository, no commit in it, or no git that reads it.
 *
 * @param except paths in the folder whose changes do not count
 */
export async function commitOf(
  folder: string,
  { env, signal }: { env: NodeJS.ProcessEnv; signal: AbortSignal },
  except: readonly string[] = [],
): Promise<SuiteCommit | undefined> {
  if (repositoryAbove(folder) === undefined) return undefined;
  const git = async (args: string[], own: string[] = []) => {
    const call = { args: [...own, '-C', folder, ...args], env, reach: 'local' as const, timeoutMs, signal };
    return (await runGit(call)).toString('utf8').trimEnd();
  };
  try {
    const id = await git(['rev-parse', '--verify', 'HEAD']);
    const others = except.map((path) => `:(exclude,literal)${path}`);
    const changes = await git([...statusArgs, ...others], await withoutFilters(git));
    return { id, dirty: changes !== '' };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof OffsiteError) return undefined;
    throw error;
  }
}

/** Files that a repository ignores do not count, and nothing runs in its submodules. */
const statusArgs = ['status', '--porcelain', '--ignore-submodules=dirty', '--no-renames', '--', '.'];

/** Settings with which the repository's own filters, which are programs, do not run. */
async function withoutFilters(git: (args: string[]) => Promise<string>): Promise<string[]> {
  const pattern = String.raw`^filter\..*\.(clean|process)$`;
  const list = ['config', '--local', '--includes', '--name-only', '--get-regexp', pattern];
  // It ends with 1 if there are none.
  const found = await git(list).catch((error: unknown) => {
    if (error instanceof OffsiteError) return '';
    throw error;
  });
  return found.split('\n').flatMap((key) => (key === '' ? [] : ['-c', `${key}=`]));
}
