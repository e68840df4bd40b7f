import type { TrialResult } from './result.ts';

/** What a record of a trial holds of the paths it found. Grading sees all of them; an agent may make more than a disk should keep. */
const limits = { paths: 10_000, characters: 1024 ** 2 } as const;

/** The lists of paths as they are kept, with how many there were where some are left out. */
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
  let room: number = limits.characters;
  const tooMany = paths.slice(0, limits.paths).findIndex((path) => {
    room -= path.length;
    return room < 0;
  });
  return paths.slice(0, tooMany === -1 ? limits.paths : tooMany);
}
