/**
 * The folder into which runners install their CLIs: apart from the image's own programs, and writable for the
 * sandbox's user.
 */
const PREFIX = '/offsite/cli';

/** A CLI that is an npm package. */
export interface NpmCli {
  package: string;
  version: string;
  /** The name of its program. */
  program: string;
  /**
   * The path of the package's own install script, relative to the package, if the CLI does not work without
   * it. Install scripts of its dependencies are not run.
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

/** The absolute path of a file with the version that the CLI reported when it was installed. */
export function versionFile(cli: Pick<NpmCli, 'program'>): string {
  return `${PREFIX}/${cli.program}.version`;
}

/**
 * The script that installs a CLI, at `version` if that is given. It asks the CLI for its version once, so
 * that trials need not ask. This also checks that the CLI starts.
 */
export function npmInstall(cli: NpmCli, version = cli.version): string {
  const npm = `npm install --global --prefix ${PREFIX} --cache "$cache" --ignore-scripts --no-audit`;
  const firstVersion = "grep -oE '[0-9]+[.][0-9]+[.][0-9]+[A-Za-z0-9.+-]*' | head -n 1";
  return `#!/bin/sh
set -eu
command -v npm > /dev/null || { echo 'this image has no npm, which installs ${cli.package}' >&2; exit 1; }
cache=$(mktemp -d)
${npm} --no-fund --no-update-notifier --loglevel=error \\
  '${cli.package}@${version}'
${cli.script === undefined ? '' : `(cd ${packagePath(cli, '')} && node ${cli.script})\n`}home=$(mktemp -d)
HOME="$home" ${programPath(cli)} --version < /dev/null 2>&1 | ${firstVersion} > ${versionFile(cli)}
test -s ${versionFile(cli)} || { echo '${cli.program} does not say its version' >&2; exit 1; }
rm -rf "$cache" "$home"
`;
}
