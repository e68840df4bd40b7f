import { gitSources } from '../../bounds/suite.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import { failed, type GitCall, runGit } from './run-git.ts';

const howToDeepen =
  'it is a shallow clone, as CI systems make it, and does not have its whole history: ' +
  'git fetch --unshallow; in GitHub Actions fetch-depth: 0 of actions/checkout, in GitLab GIT_DEPTH: "0"';

/** Adds to a failure of git what to do, if a repository of this machine is a shallow clone. */
export async function namingShallowClone(
  error: unknown,
  path: string,
  { env, signal }: Pick<GitCall, 'env' | 'signal'>,
): Promise<unknown> {
  if (!(error instanceof OffsiteError) || error.code !== 'GIT_FAILED' || signal.aborted) return error;
  const args = ['-C', path, 'rev-parse', '--is-shallow-repository'];
  const asking = { env, signal, reach: 'local' as const, timeoutMs: gitSources.time.asked };
  const answer = await runGit({ ...asking, args }).catch(() => undefined);
  if (answer?.toString('utf8').trim() !== 'true') return error;
  return failed(`${messageOf(error)}; ${path}: ${howToDeepen}`);
}
