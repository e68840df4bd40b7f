import { pathLists } from '../../bounds/sandbox.ts';
import { changedPaths } from '../../engine/changes/changed-paths.ts';
import type { Kit } from '../../engine/changes/kit.ts';
import type { Container } from '../../engine/container.ts';
import type { VerifyPlace } from '../../suite/plan.ts';
import { notTheSystem, scratchPaths } from '../sandbox-paths.ts';
import { globMatcher } from './globs.ts';
import { isCache } from './verify-changes.ts';

export interface PathList {
  paths: string[];
  /** The number of all paths, listed or not. */
  count: number;
}

/** What changed outside the workspace in the sandbox that graded the work. */
export interface SystemChanges {
  /** Changes that the case lists as part of the work (`keep`). */
  kept: PathList;
  /** All other changes, except those that the case ignores. */
  unexpected: PathList;
  /** Those of the others that are in folders of temporary files, logs and caches, if they count apart. */
  caches?: PathList | undefined;
}

export interface SystemChangesRequest {
  kit: Kit | undefined;
  place: Pick<VerifyPlace, 'in' | 'keep' | 'ignore'>;
  /** Paths that had changed in the trial, if the container was made from what it left. */
  earlier?: readonly string[] | undefined;
  signal: AbortSignal;
}

/**
 * The paths that were changed, created or deleted outside the workspace. In the harness's own sandbox, only
 * the case's lists say what may change. In a fresh sandbox, the usual folders for caches, logs and temporary
 * files may change too. Nothing may run in the container meanwhile.
 */
export async function systemChanges(
  container: Container,
  { kit, place, earlier = [], signal }: SystemChangesRequest,
): Promise<{ kept: string[]; unexpected: string[] }> {
  const except = [container.workingDir, ...(place.in === 'same' ? notTheSystem : scratchPaths)];
  const changed = await changedPaths(container, { wanted: 'every', except, kit, signal });
  const paths = earlier.length > 0 ? [...new Set([...earlier, ...changed.paths])].sort() : changed.paths;
  const isKept = globMatcher(place.keep, false);
  const isIgnored = globMatcher(place.ignore, false);
  return {
    kept: paths.filter(isKept),
    unexpected: paths.filter((path) => !isKept(path) && !isIgnored(path)),
  };
}

/** Counts changes apart where every program may write: an honest agent leaves hundreds of them. */
export function cachesApart({ kept, unexpected }: Record<'kept' | 'unexpected', string[]>): SystemChanges {
  const isScratch = (path: string) =>
    isCache(path) || scratchPaths.some((one) => `${path}/`.startsWith(`${one}/`));
  const caches = unexpected.filter(isScratch);
  return {
    kept: listed(kept),
    unexpected: listed(unexpected.filter((path) => !isScratch(path))),
    ...(caches.length > 0 && { caches: listed(caches) }),
  };
}

export function listed(paths: readonly string[]): PathList {
  return { paths: paths.slice(0, pathLists.count.outside), count: paths.length };
}

/**
 * The paths as people read them: as JSON strings, because names may hold line breaks and terminal control
 * characters.
 */
export function shownPaths(paths: readonly string[]): string {
  const shown = paths.slice(0, pathLists.count.shown).map((path) => JSON.stringify(path));
  const more = paths.length > shown.length ? ` and ${paths.length - shown.length} more` : '';
  return `${shown.join(', ')}${more}`;
}
