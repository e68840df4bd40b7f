/**
 * The folder into which runners install their CLIs, each with a Node of its own. Sandboxes have it read-only,
 * apart from the image's own programs and not on the `PATH`.
 */
export const harnessFolder = '/offsite/cli';

/** The absolute path of the Node that runs a CLI in the sandbox. */
export const harnessNode = `${harnessFolder}/bin/node`;

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
  return `${harnessFolder}/bin/${cli.program}`;
}

/** The absolute path of a file of a CLI's package in the sandbox. */
export function packagePath(cli: Pick<NpmCli, 'package'>, file: string): string {
  return `${harnessFolder}/lib/node_modules/${cli.package}/${file}`;
}

/** The absolute path of a file with the version that the CLI reported when it was installed. */
export function versionFile(cli: Pick<NpmCli, 'program'>): string {
  return `${harnessFolder}/${cli.program}.version`;
}

/**
 * The script that installs a CLI, at `version` if that is given, with a copy of the Node that installs it. It
 * asks the CLI for its version once, so that trials need not ask. This also checks that the CLI starts: npm
 * calls an install a success although it could not fetch the package with the CLI's binary for this platform,
 * because that is an optional dependency.
 */
export function npmInstall(cli: NpmCli, version = cli.version): string {
  const npm = `npm install --global --prefix ${harnessFolder} --cache "$cache" --ignore-scripts --no-audit`;
  const versions = "grep -oE '[0-9]+[.][0-9]+[.][0-9]+[A-Za-z0-9.+-]*'";
  return `#!/bin/sh
set -eu
command -v npm > /dev/null || { echo 'this image has no npm, which installs ${cli.package}' >&2; exit 1; }
cache=$(mktemp -d)
${npm} --no-fund --no-update-notifier --loglevel=error \\
  '${cli.package}@${version}'
${cli.script === undefined ? '' : `(cd ${packagePath(cli, '')} && node ${cli.script})\n`}cp -L "$(command -v node)" ${harnessNode}
script=$(readlink -f ${programPath(cli)})
if head -n 1 "$script" | grep -q '^#!.*node'; then
  rm ${programPath(cli)}
  printf '#!/bin/sh\\nexec ${harnessNode} "%s" "$@"\\n' "$script" > ${programPath(cli)}
  chmod 755 ${programPath(cli)}
fi
home=$(mktemp -d)
HOME="$home" ${programPath(cli)} --version < /dev/null > "$cache/said" 2>&1 ||
  { cat "$cache/said" >&2; echo '${cli.program} does not start' >&2; exit 1; }
${versions} "$cache/said" | head -n 1 > ${versionFile(cli)}
test -s ${versionFile(cli)} || { echo '${cli.program} does not say its version' >&2; exit 1; }
rm -rf "$cache" "$home"
`;
}
