import { readFileSync } from 'node:fs';
import type { LaunchFile } from './cli-launch.ts';
import { harnessFolder } from './npm-cli.ts';
import type { ModelAccess } from './runner.ts';

/** A CLI that is a package of PyPI. */
export interface PythonCli extends PythonPackages {
  /** The name of its program. */
  program: string;
  /** The release of Debian whose Python runs it: bookworm has Python 3.11, trixie 3.13. */
  debian: 'bookworm' | 'trixie';
}

/** The absolute path of the Python that runs a CLI in the sandbox. It sees the CLI's packages. */
export const harnessPython = `${harnessFolder}/venv/bin/python`;

/**
 * The script that installs a CLI, at `version` if that is given, with a Python of its own. The Python comes
 * with all libraries that it needs, so it runs in every image for the same kind of processor, whatever C
 * library the image has.
 */
export function pythonInstall(cli: PythonCli, version = cli.version): string {
  return `#!/bin/sh
set -eu
for program in apt-get dpkg-deb; do
  command -v "$program" > /dev/null || {
    echo "this image has no $program, which fetches the Python of ${cli.package}" >&2
    exit 1
  }
done
work=$(mktemp -d)
python=${harnessFolder}/python
${debianPython(cli.debian)}
PYTHONPATH=$(echo "$root"/usr/share/python-wheels/pip-*.whl) "$python/bin/python3" -m pip install --quiet \\
  --no-cache-dir --no-compile --root-user-action ignore --target "$work/uv" ${uv}
uv() { "$work/uv/bin/uv" --quiet --no-cache --no-config "$@"; }
uv venv --python "$python/bin/python3" ${harnessFolder}/venv
${installPackages(cli, version, harnessPython)}
# Some packages need it and do not say where it is. One that is loaded is found.
echo "import ctypes; ctypes.CDLL('$python/lib/libstdc++.so.6')" \\
  > "$(${harnessPython} -c 'import site; print(site.getsitepackages()[0])')/offsite.pth"
HOME="$work" ${harnessFolder}/venv/bin/${cli.program} --help < /dev/null > "$work/help" 2>&1 ||
  { cat "$work/help" >&2; echo '${cli.program} does not start' >&2; exit 1; }
${harnessPython} -c 'from importlib.metadata import version; print(version("${cli.package}"))' \\
  > ${pythonVersionFile(cli)}
rm -rf "$work"
`;
}

/** The absolute path of a file with the CLI's version. */
export function pythonVersionFile({ program }: Pick<PythonCli, 'program'>): string {
  return `${harnessFolder}/${program}.version`;
}

/**
 * Lines that put a release's Python and its libraries into $python. They leave what was unpacked in $root.
 * Debian's packages work only at fixed paths. This Python finds its modules from its own place, and its
 * libraries by the loader and the search path that patchelf writes into it.
 */
function debianPython(debian: string): string {
  return `apt=$work/apt
root=$work/root
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$root" "$python/bin" "$python/lib"
# As if nothing were installed: all that Python needs is fetched.
: > "$apt/status"
# From the mirrors that this image uses.
. /etc/os-release
mkdir "$apt/parts"
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
  [ ! -f "$file" ] || sed "s/$VERSION_CODENAME/${debian}/g" "$file" > "$apt/parts/\${file##*/}"
done
[ ! -f "$apt/parts/sources.list" ] || mv "$apt/parts/sources.list" "$apt/parts/main.list"
apt() {
  apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$apt/parts" \\
    -o Dir::State="$apt" -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" \\
    -o Dir::Cache="$apt/cache" -o Debug::NoLocking=1 -o APT::Sandbox::User=root \\
    -o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}
apt update
apt install --download-only --no-install-recommends -y python3 python3-pip-whl patchelf libstdc++6
for package in "$apt"/cache/archives/*.deb; do
  case \${package##*/} in
    ca-certificates_* | debconf_* | dpkg_* | openssl_* | tar_* | tzdata_*) ;;
    *) dpkg-deb -x "$package" "$root" ;;
  esac
done
for folder in "$root"/lib/*-linux-gnu* "$root"/usr/lib/*-linux-gnu*; do
  [ ! -d "$folder" ] || find "$folder" -maxdepth 1 -name '*.so*' -exec cp -a {} "$python/lib/" ';'
done
cp -a "$root"/usr/lib/python3.* "$python/lib/"
cp -L "$root/usr/bin/python3" "$python/bin/python3"
loader=$(echo "$python"/lib/ld-linux*)
patchelf() { "$loader" --library-path "$python/lib" "$root/usr/bin/patchelf" "$@" "$python/bin/python3"; }
# One after the other: patchelf 0.18 breaks this program if it sets both at once.
patchelf --force-rpath --set-rpath "$python/lib"
patchelf --set-interpreter "$loader"`;
}

/** The folder of the driver, below the harness's own folder. */
const folderOf = (home: string) => `${home}/driver`;

/**
 * The files of a driver: a Python program that runs a CLI without a stream, and prints lines that
 * `driverLines` reads.
 *
 * @param source the URL of its source
 */
export function driverFiles(home: string, source: URL): LaunchFile[] {
  const parts = { 'driver_lines.py': new URL('./driver_lines.py', import.meta.url), 'driver.py': source };
  return Object.entries(parts).map(([name, url]) => ({
    path: `${folderOf(home)}/${name}`,
    content: readFileSync(url, 'utf8'),
  }));
}

/**
 * The command line that starts a driver. It ignores the profile's variables for Python, which are for what
 * the agent runs, and finds no modules in the workspace.
 *
 * @param sessionId the conversation to continue, as the driver named it
 */
export function driverCommand(home: string, sessionId: string | undefined): string[] {
  return [
    harnessPython,
    '-I',
    '-X',
    'utf8',
    `${folderOf(home)}/driver.py`,
    ...(sessionId === undefined ? ['--new'] : ['--continue', sessionId]),
  ];
}

/** A package of PyPI and the packages that it needs. */
interface PythonPackages {
  package: string;
  version: string;
  /**
   * The file with the exact versions of all packages that are installed for `version`. Releases on PyPI can
   * be withdrawn, so resolving again can give other versions, even for the same date.
   * `node scripts/lock-python.ts` writes it.
   */
  lock: URL;
  /** Packages that it needs and does not name. */
  also?: readonly string[];
  /** Dependencies that it does not need for what Offsite does with it. */
  without?: readonly string[];
  /** Dependencies that PyPI has as source only. What builds them must be a dependency or in `also`. */
  built?: readonly string[];
}

/** The installer from PyPI. */
export const uv = 'uv==0.13.9';

/** The requirements to resolve: the package itself, and the packages that it does not name. */
export function requirementsOf({ also = [], ...named }: PythonPackages, version = named.version): string[] {
  return [`${named.package}==${version}`, ...also];
}

/** The options of uv that say which files of a package it may use. */
export function filesOptions({ built = [] }: PythonPackages): string[] {
  return ['--only-binary', ':all:', ...built.flatMap((name) => ['--no-binary', name])];
}

/**
 * Lines of a script that install `version` into the environment of `python`, which is empty. They call `uv`
 * and leave files in $work. The pinned version gets what its lock names, and nothing else; another one gets
 * the newest dependencies.
 */
function installPackages(packages: PythonPackages, version: string, python: string): string {
  // The volume is read-only, so Python could not keep what it compiles.
  const options = ['--python', python, '--compile-bytecode', ...filesOptions(packages)].join(' ');
  if (version !== packages.version) {
    const wanted = requirementsOf(packages, version).map((name) => `'${name}'`);
    return `printf '%s\\n' ${(packages.without ?? []).join(' ')} > "$work/without"
uv pip install ${options} --excludes "$work/without" ${wanted.join(' ')}`;
  }
  // Without the constraints, the packages from source would be built with the newest build tools.
  return `cat > "$work/lock" <<'end of lock'
${readFileSync(packages.lock, 'utf8')}end of lock
uv pip sync ${options} --build-constraints "$work/lock" "$work/lock"`;
}

/** Environment variables with which LiteLLM sends requests only to the model. */
export const liteLlmDefaults = {
  // Otherwise it fetches a list of prices.
  LITELLM_LOCAL_MODEL_COST_MAP: 'True',
  LITELLM_MODE: 'PRODUCTION',
};

/** The model's name for LiteLLM: what is before the slash chooses the wire. */
export function liteLlmModel({ wire, name }: ModelAccess): string {
  return `${wire === 'anthropic-messages' ? 'anthropic' : 'openai'}/${name}`;
}

/** Environment variables with the address of the model and the trial's token. */
export function accessOfLiteLlm({ wire, origin, token }: ModelAccess): Record<string, string> {
  if (wire === 'anthropic-messages') return { ANTHROPIC_BASE_URL: origin, ANTHROPIC_API_KEY: token };
  return { OPENAI_BASE_URL: `${origin}/v1`, OPENAI_API_BASE: `${origin}/v1`, OPENAI_API_KEY: token };
}
