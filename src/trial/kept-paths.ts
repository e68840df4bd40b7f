import { pathLists } from '../bounds/sandbox.ts';
import type { TrialResult } from './result.ts';

/**
 * The lists of paths as a record keeps them, with how many there were where some are left out. Grading sees
 * all of them; an agent may make more than a disk should keep.
 */
export function keptPaths({
  filesChanged,
  artifactsOmitted,
}: Partial<TrialResult>): Pick<
  TrialResult,
  'filesChanged' | 'filesChangedCount' | 'artifactsOmitted' | 'artifactsOmittedCount'
> {
  return {
    filesChanged: filesChanged && firstOf(filesChanged),
    filesChangedCount: filesChanged?.length,
    artifactsOmitted: artifactsOmitted && firstOf(artifactsOmitted),
    artifactsOmittedCount: artifactsOmitted?.length,
  };
}

function firstOf(paths: readonly string[]): string[] {
  let room = pathLists.bytes.kept;
  const tooMany = paths.slice(0, pathLists.count.kept).findIndex((path) => {
    room -= path.length;
    return room < 0;
  });
  return paths.slice(0, tooMany === -1 ? pathLists.count.kept : tooMany);
}
