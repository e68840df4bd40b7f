import { type FetchedSources, fetchSources } from '../suite/git/fetch-sources.ts';
import type { CommandContext } from './context.ts';
import { suiteOptions } from './options.ts';
import type { Progress } from './output/progress.ts';

/**
 * Fetches the git sources of a suite into the data folder, with the user's own credentials where the
 * configuration names the host.
 */
export async function sourcesOf(
  file: string,
  options: { allowOutside?: string[] | undefined },
  context: CommandContext,
  { progress, signal }: { progress: Pick<Progress, 'note' | 'update'>; signal: AbortSignal },
): Promise<FetchedSources> {
  const { dataFolder, env, config } = context;
  let shown: string | undefined;
  const show = (title: string | undefined) => {
    if (shown !== undefined) progress.update({ kind: 'step', title: shown, state: 'ends' });
    shown = title;
    if (title !== undefined) progress.update({ kind: 'step', title, state: 'begins' });
  };
  try {
    return await fetchSources(file, {
      ...suiteOptions(options, context),
      ...{ dataFolder, env, signal, note: progress.note, onProgress: show },
      credentialsFor: config.git.credentials,
    });
  } finally {
    show(undefined);
  }
}
