import { pathLists } from '../bounds/sandbox.ts';
import { changedPaths } from '../engine/changes/changed-paths.ts';
import type { Kit } from '../engine/changes/kit.ts';
import type { Container } from '../engine/container.ts';
import type { VerifyPlace } from '../suite/plan.ts';
import { globMatcher } from './globs.ts';
import { notTheSystem, scratchPaths } from './sandbox-paths.ts';

export interface PathList {
  paths: string[];
  /** Of all, listed or not. */
  count: number;
}

/** What changed outside the workspace in a sandbox that work was graded in. */
export interface SystemChanges {
  /** Changes that the case calls part of the work. */
  kept: PathList;
  /** All others but those that the case ignores. */
  unexpected: PathList;
}

export interface SystemChangesRequest {
  kit: Kit | undefined;
  place: Pick<VerifyPlace, 'in' | 'keep' | 'ignore'>;
  signal: AbortSignal;
}

/**
 * What was changed, made or deleted outside the workspace. Where a case is graded in the harness's own
 * sandbox, its lists alone say what may change; in a fresh one, the usual places for caches, logs and
 * temporary files may as well. Nothing may run in the container.
 */
export async function systemChanges(
  container: Container,
  { kit, place, signal }: SystemChangesRequest,
): Promise<{ kept: string[]; unexpected: string[] }> {
  const except = place.in === 'same' ? notTheSystem : scratchPaths;
  const { paths } = await changedPaths(container, { wanted: 'every', except, kit, signal });
  const isKept = globMatcher(place.keep, false);
  const isIgnored = globMatcher(place.ignore, false);
  return {
    kept: paths.filter(isKept),
    unexpected: paths.filter((path) => !isKept(path) && !isIgnored(path)),
  };
}

export function listed(paths: readonly string[]): PathList {
  return { paths: paths.slice(0, pathLists.count.outside), count: paths.length };
}

/** The paths for people: JSON texts, since names may hold line breaks and what terminals obey. */
export function shownPaths(paths: readonly string[]): string {
  const shown = paths.slice(0, pathLists.count.shown).map((path) => JSON.stringify(path));
  const more = paths.length > shown.length ? ` and ${paths.length - shown.length} more` : '';
  return `${shown.join(', ')}${more}`;
}
