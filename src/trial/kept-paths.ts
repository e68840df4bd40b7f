import { pathLists } from '../bounds/sandbox.ts';
import type { TrialRecord } from '../record/trial-record.ts';

/**
 * The lists of paths as a record keeps them. If some paths are left out, the counts say how many there were.
 * Grading sees all paths, but an agent can make more of them than a disk should keep.
 */
export function keptPaths({
  filesChanged,
  artifactsOmitted,
}: Partial<TrialRecord>): Pick<
  TrialRecord,
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
