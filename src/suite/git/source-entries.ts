import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { PlacedFile } from '../environment.ts';
import { committedEntries, contentsOf } from './commit-files.ts';
import type { PlannedSource } from './git-source.ts';
import { failed } from './run-git.ts';

/**
 * A repository with a workspace and without a remote: the sandbox does not learn where the source is from.
 */
const config = `[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
`;

/**
 * What a source puts into the workspace: the files of its commit as they are in the repository, without any
 * filter, and `.git`. Paths are relative. One file is in memory at a time. Throws an `input` error if the
 * commit is no longer kept.
 */
export async function* sourceEntries(
  source: PlannedSource,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): AsyncGenerator<PlacedFile> {
  const { repository, commit, rebuilt = commit, history, url } = source;
  if (!existsSync(repository))
    throw failed(`commit ${commit} of ${url} is no longer in ${repository}: run the suite again`);
  const reading = { repository, env, signal };
  const entries = await committedEntries(rebuilt, reading);
  // Git's own folders first, so that no name of the commit can be in its place.
  if (history === 'commit') yield* gitFolder(repository);
  const contents = contentsOf(
    entries.filter(({ kind }) => kind !== 'folder' && kind !== 'submodule'),
    reading,
  );
  for (const { path, kind } of entries) {
    if (kind === 'folder' || kind === 'submodule') {
      yield { path, folder: true, mode: 0o755 };
      continue;
    }
    const { value: content } = await contents.next();
    if (!content) throw failed(`the kept repository ${repository} is damaged: it lacks ${path}`);
    if (kind === 'link') yield { path, linkTarget: content.toString('utf8') };
    else yield { path, content, mode: kind === 'executable' ? 0o755 : 0o644 };
  }
  await contents.next();
}

function* gitFolder(repository: string): Generator<PlacedFile> {
  yield { path: '.git', folder: true, mode: 0o755 };
  const entries = readdirSync(repository, { withFileTypes: true, recursive: true });
  for (const entry of entries.toSorted((one, other) => (pathOf(one) < pathOf(other) ? -1 : 1))) {
    const path = `.git/${relative(repository, pathOf(entry))}`;
    if (path === '.git/config') yield { path, content: Buffer.from(config), mode: 0o644 };
    else if (entry.isDirectory()) yield { path, folder: true, mode: 0o755 };
    else if (entry.isFile()) yield { path, content: readFileSync(pathOf(entry)), mode: 0o644 };
  }
}

function pathOf({ parentPath, name }: { parentPath: string; name: string }): string {
  return join(parentPath, name);
}
