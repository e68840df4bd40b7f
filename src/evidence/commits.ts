import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { gitSources } from '../bounds/suite.ts';
import type { Redactor } from '../redaction/redactor.ts';
import { environmentsOf } from '../suite/environment-content.ts';
import { committedEntries, contentsOf } from '../suite/git/commit-files.ts';
import { finishRepository } from '../suite/git/fetch-commit.ts';
import { failed, runGit } from '../suite/git/run-git.ts';
import type { SuitePlan } from '../suite/plan.ts';

/**
 * The commits that workspaces begin with, as packs of git. They hold what the sandbox got: a suite in the
 * same repository is not in them.
 */

interface Reading {
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
}

/** The id of each commit, with the bare repository that the plan says it is in. */
export function commitsOf({ cases }: Pick<SuitePlan, 'cases'>): Map<string, string> {
  return new Map(
    cases
      .flatMap(environmentsOf)
      .flatMap(({ source }) => (source ? [[source.rebuilt ?? source.commit, source.repository]] : [])),
  );
}

/** The file with all objects of a kept commit. Undefined if it is no longer kept. */
export function packOf(repository: string): string | undefined {
  const folder = join(repository, 'objects', 'pack');
  const packs = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.pack')) : [];
  return packs.length === 1 ? join(folder, packs[0] ?? '') : undefined;
}

/** Whether a key is in a commit or in one of its files, which a pack compresses. */
export async function hasKeyIn(
  commit: string,
  repository: string,
  { redactor, ...reading }: Reading & { redactor: Redactor },
): Promise<boolean> {
  const from = { ...reading, repository };
  const entries = await committedEntries(commit, from);
  const files = entries.filter(({ kind }) => kind !== 'folder' && kind !== 'submodule');
  for await (const content of contentsOf([commit, ...files.map(({ object }) => object)], from)) {
    const search = redactor.search();
    if (search.push(content) || search.end()) return true;
  }
  return false;
}

/**
 * Makes a bare repository of somebody else's pack, as if the commit had been fetched. Git computes the id of
 * each object from its content. Throws the input error `GIT_FAILED` if the commit is not whole in the pack;
 * nothing is left then.
 */
export async function unpackCommit(
  commit: string,
  { pack, repository }: { pack: string; repository: string },
  { env, signal }: Reading,
): Promise<void> {
  const run = (args: string[], input?: string) =>
    runGit({ args, env, signal, input, reach: 'nothing', timeoutMs: gitSources.time.read });
  const git = `--git-dir=${repository}`;
  try {
    mkdirSync(repository, { recursive: true, mode: 0o700 });
    const format = commit.length === 64 ? ['--object-format=sha256'] : [];
    await run(['init', '--quiet', '--bare', '--template=', ...format, '--', repository]);
    const most = `--max-input-size=${gitSources.bytes.fetched}`;
    await run([git, 'index-pack', '--stdin', most], pack);
    const text = (await run([git, 'cat-file', 'commit', commit])).toString('latin1');
    // Its parents are not in the pack, as after a shallow fetch.
    const [head = ''] = text.split('\n\n');
    if (/^parent /m.test(head)) writeFileSync(join(repository, 'shallow'), `${commit}\n`);
    await finishRepository(repository, commit, { env, signal });
  } catch (error) {
    rmSync(repository, { recursive: true, force: true });
    signal.throwIfAborted();
    if (error instanceof OffsiteError) throw error;
    throw failed(messageOf(error));
  }
}
