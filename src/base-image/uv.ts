/**
 * What a build prints if it cannot get uv from PyPI. The image is useful without it, so the build continues.
 */
export const withoutUv = 'offsite-without-uv';

/** The arguments of pip with which it installs the requirements of a file into the image. */
export const pipInstall = [
  'install',
  '--quiet',
  '--no-cache-dir',
  '--root-user-action',
  'ignore',
  '--require-hashes',
  '--disable-pip-version-check',
  '--only-binary',
  ':all:',
  '--timeout',
  '60',
  '--retries',
  '4',
].join(' ');

/** Warns the user if a build printed that it has no uv. */
export function warnWithoutUv(printed: string, log: (line: string) => void): void {
  // The engine also prints the step itself, which has the word in quotes.
  if (!new RegExp(`^${withoutUv}$`, 'm').test(printed)) return;
  log(
    'The image has no uv, because pip could not fetch it. PIP_INDEX_URL names another index than PyPI; ' +
      '`offsite engine base-image --force` tries again.',
  );
}
