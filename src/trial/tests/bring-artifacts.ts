import { posix } from 'node:path';
import { OffsiteError } from '../../base/offsite-error.ts';
import { carriedArtifacts } from '../../bounds/sandbox.ts';
import type { Container } from '../../engine/container.ts';
import type { BroughtArtifacts, CarriedArtifact } from '../../suite/case-tests.ts';
import { globMatcher } from '../workspace/globs.ts';

/** `refused`: something is in the way that only the agent, or the author, can have put there. */
export type Brought =
  /** With the absolute paths of what was left out: devices, links that lead elsewhere. */
  { kind: 'brought'; leftOut: string[] } | { kind: 'refused'; why: string };

/**
 * Brings the artifacts of an agent to the same paths of another sandbox. An artifact that does not exist is
 * left out; the tests will notice. Nothing may run in the agent's sandbox, and no program of it takes part.
 * An artifact behind a link is refused: the link could lead to anything.
 *
 * @param maxBytes of all artifacts
 */
export async function bringArtifacts(
  from: Container,
  to: Container,
  { artifacts, sealed }: BroughtArtifacts,
  { maxBytes, signal }: { maxBytes: number; signal: AbortSignal },
): Promise<Brought> {
  const left = { bytes: maxBytes, entries: carriedArtifacts.count.entries };
  const leftOut: string[] = [];
  for (const artifact of artifacts) {
    const { path } = artifact;
    const above = await aboveOf(from, path, signal);
    if (above.kind === 'link')
      return { kind: 'refused', why: `the artifact ${path} cannot be read: ${above.path} is not a folder` };
    if (above.kind === 'nothing') continue;
    try {
      const keeps = keeping(artifact, sealed);
      const limits = { maxBytes: left.bytes, maxEntries: left.entries, signal };
      const carried = await from.carryTo(to, path, { keeps, links: 'inside', ...limits });
      left.bytes -= carried.bytes;
      left.entries -= carried.entries;
      leftOut.push(...carried.leftOut.map((below) => posix.join(path, below)));
    } catch (error) {
      if (!(error instanceof OffsiteError)) throw error;
      if (error.code === 'ENGINE_TOO_LARGE')
        return {
          kind: 'refused',
          why: `the artifact ${path}, with those before it, is more than the sandbox allows`,
        };
      if (error.code !== 'ENGINE_NOT_FOUND') throw error;
    }
  }
  return { kind: 'brought', leftOut };
}

/** Whether everything above a path is a folder. The engine follows links on the way to a path. */
async function aboveOf(
  container: Container,
  path: string,
  signal: AbortSignal,
): Promise<{ kind: 'folders' | 'nothing' } | { kind: 'link'; path: string }> {
  const parts = path.split('/').slice(1, -1);
  for (const index of parts.keys()) {
    const above = `/${parts.slice(0, index + 1).join('/')}`;
    const kind = await container.kindOf(above, signal);
    if (kind === 'nothing') return { kind };
    if (kind !== 'folder') return { kind: 'link', path: above };
  }
  return { kind: 'folders' };
}

/** Whether something below an artifact is brought. */
function keeping({ path, exclude }: CarriedArtifact, sealed: readonly string[]) {
  const isBelow = (inner: string, folder: string) => inner === folder || inner.startsWith(`${folder}/`);
  const closed = sealed.filter((folder) => !isBelow(path, folder));
  const isExcluded = globMatcher(
    exclude.flatMap((glob) => [glob, `**/${glob}`]),
    false,
  );
  return (below: string) =>
    below === '' ||
    (!isExcluded(below) && !closed.some((folder) => isBelow(posix.join(path, below), folder)));
}
