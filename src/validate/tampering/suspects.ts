/** A file that is not what it is in a sandbox of the same image in which no harness ran. */
export interface ChangedFile {
  path: string;
  /** Whether the image has it too. */
  inImage: boolean;
}

/** Where the system's own programs, libraries and settings are; where these folders are links to others, the links too. */
const system = /^\/(s?bin|lib\w*|usr|etc)(\/|$)/;
/** The engine writes these when it starts a container; the rest is state that programs leave without anybody running it. */
const harmless =
  /^\/etc\/(hostname|hosts|resolv\.conf|mtab|ld\.so\.cache~|\.pwd\.lock)$|^\/usr\/share\/(doc|man|locale)\//;
/** What interpreters and loaders run by itself, wherever it lies. */
const startup =
  /^\/etc\/(ld\.so\.preload|gitconfig|npmrc)$|\/(site|user)customize(\/__init__)?\.pyc?$|\.pth$|\/glibc-hwcaps\/|\/etc\/npmrc$/;
/** Programs and libraries that are found by their name alone. */
const foundByName = /\/s?bin\/[^/]+$|\/lib[^/]*\.so[.\d]*$|^\/usr\/.*\.(pyc|so)$/;

/** Whether a change of the path can matter at all, be it in the image or not. */
export function isOfInterest(path: string): boolean {
  return !harmless.test(path) && (startup.test(path) || system.test(path));
}

/** Which changed files can make a program say what it would not have said. `names` are those of the image's programs and libraries. */
export function suspects(changed: readonly ChangedFile[], names: ReadonlySet<string>): string[] {
  return changed
    .filter(({ path, inImage }) => {
      if (!isOfInterest(path)) return false;
      if (inImage || startup.test(path)) return true;
      return (
        foundByName.test(path) && (path.endsWith('.pyc') || names.has(path.slice(path.lastIndexOf('/') + 1)))
      );
    })
    .map(({ path }) => path)
    .toSorted();
}

/** Whether it takes the names of the image's programs to tell. */
export function needsNames(changed: readonly ChangedFile[]): boolean {
  return changed.some(({ path, inImage }) => !inImage && system.test(path) && foundByName.test(path));
}
