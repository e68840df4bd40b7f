import { readFileSync } from 'node:fs';

/** A package of PyPI and the packages that it needs. */
export interface PythonPackages {
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
export function installPackages(packages: PythonPackages, version: string, python: string): string {
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
