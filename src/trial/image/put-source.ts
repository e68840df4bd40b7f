import { posix } from 'node:path';
import type { NewEntry } from '../../engine/archive/entries.ts';
import type { Container } from '../../engine/container.ts';
import { OffsiteError } from '../../offsite-error.ts';
import type { PlannedSource } from '../../suite/git/git-source.ts';
import { sourceEntries } from '../../suite/git/source-entries.ts';
import { TrialFailure } from '../failure.ts';

export interface SourceToPut {
  planned: PlannedSource;
  /** The sandbox's user; none for root. Git refuses a repository that belongs to somebody else. */
  owner: { uid?: number; gid?: number };
  /** The host's environment, in which git is found. */
  env: NodeJS.ProcessEnv;
}

/**
 * Puts the commit of a source into the workspace. Throws a {@link TrialFailure} if it is no longer in the
 * data folder.
 */
export async function putSource(
  container: Container,
  { planned, owner, env }: SourceToPut,
  signal: AbortSignal,
): Promise<void> {
  const { workingDir } = container;
  async function* entries(): AsyncGenerator<NewEntry> {
    yield { path: workingDir, folder: true, ...owner };
    for await (const entry of sourceEntries(planned, env, signal))
      yield { ...entry, path: posix.join(workingDir, entry.path), ...owner };
  }
  try {
    await container.put(entries(), '/', signal);
  } catch (error) {
    if (!(error instanceof OffsiteError) || error.code !== 'GIT_FAILED') throw error;
    throw new TrialFailure({ kind: 'infrastructure', phase: 'prepare', message: error.message });
  }
}
