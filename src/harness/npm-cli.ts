/**
 * Where runners install their CLIs: apart from the image's own programs, and writable to a sandbox's user.
 */
const PREFIX = '/offsite/cli';

/** A CLI that is a package of npm's. */
export interface NpmCli {
  package: string;
  version: string;
  /** Its program. */
  program: string;
  /**
   * Its own install script, relative to the package, where it does not work without. Scripts of packages it
   * depends on are not run.
   */
  script?: string;
}

/** The absolute path of a CLI's program in the sandbox. */
export function programPath(cli: Pick<NpmCli, 'program'>): string {
  return `${PREFIX}/bin/${cli.program}`;
}

/** The absolute path of a file of a CLI's package in the sandbox. */
export function packagePath(cli: Pick<NpmCli, 'package'>, file: string): string {
  return `${PREFIX}/lib/node_modules/${cli.package}/${file}`;
}

/** Holds what the CLI said of its version when it was installed. */
export function versionFile(cli: Pick<NpmCli, 'program'>): string {
  return `${PREFIX}/${cli.program}.version`;
}

/**
 * The script that installs a CLI, at `version` where that is given. It asks the CLI for its version once, so
 * that not every trial pays for it; that also shows that it starts.
 */
export function npmInstall(cli: NpmCli, version = cli.version): string {
  return `#!/bin/sh
set -eu
command -v npm > /dev/null || { echo 'this image has no npm, which installs ${cli.package}' >&2; exit 1; }
cache=$(mktemp -d)
npm install --global --prefix ${PREFIX} --cache "$cache" --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error \\
  '${cli.package}@${version}'
${cli.script === undefined ? '' : `(cd ${packagePath(cli, '')} && node ${cli.script})\n`}home=$(mktemp -d)
HOME="$home" ${programPath(cli)} --version < /dev/null 2>&1 | grep -oE '[0-9]+[.][0-9]+[.][0-9]+[A-Za-z0-9.+-]*' | head -n 1 > ${versionFile(cli)}
test -s ${versionFile(cli)} || { echo '${cli.program} does not say its version' >&2; exit 1; }
rm -rf "$cache" "$home"
`;
}
