import { gitSources } from '../../bounds/suite.ts';
import { messageOf } from '../../offsite-error.ts';
import { failed, type GitCall, kindOfFailure, runGit } from './run-git.ts';

const howToDeepen =
  'it is a shallow clone, without its whole history; fetch it with git fetch --unshallow ' +
  '(GitHub Actions: fetch-depth: 0 of actions/checkout; GitLab: GIT_DEPTH: "0")';

/** Adds to a failure of git what to do, if a repository of this machine is a shallow clone. */
export async function namingShallowClone(
  error: unknown,
  path: string,
  { env, signal }: Pick<GitCall, 'env' | 'signal'>,
): Promise<unknown> {
  const failure = kindOfFailure(error);
  if (failure === undefined || signal.aborted) return error;
  const args = ['-C', path, 'rev-parse', '--is-shallow-repository'];
  const asking = { env, signal, reach: 'local' as const, timeoutMs: gitSources.time.asked };
  const answer = await runGit({ ...asking, args }).catch(() => undefined);
  if (answer?.toString('utf8').trim() !== 'true') return error;
  return failed(`${messageOf(error)}; ${path}: ${howToDeepen}`, failure);
}
