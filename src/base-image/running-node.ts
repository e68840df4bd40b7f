/** How a Node was built. */
export interface NodeBuild {
  /** `24.21.0` */
  version: string;
  /** Node's name: `x64`. */
  arch: string;
  /** The glibc that it was built with: `2.28`. Undefined for musl. */
  glibc: string | undefined;
  /** Libraries of its distribution that it loads: `openssl`. */
  shared: readonly string[];
}

/** The Node of this process. */
export function runningBuild(): NodeBuild {
  const { config, versions, arch } = process;
  const report: typeof process.report & { excludeNetwork?: boolean } = process.report;
  // Otherwise the report asks for the names of all open connections.
  report.excludeNetwork = true;
  const { header } = report.getReport() as { header: { glibcVersionCompiler?: string } };
  const shared = Object.entries(config.variables as unknown as Record<string, unknown>).flatMap(
    ([name, is]) => (is === true && /^node_shared_?(.*)$/.exec(name)?.[1]) || [],
  );
  return { version: versions.node, arch, glibc: header.glibcVersionCompiler, shared };
}

/** Why a Node does not run in an image of Debian, as a verb with its object; undefined if it does. */
export function unfitFor(
  { version, glibc, shared }: NodeBuild,
  image: { major: number; glibc: string },
): string | undefined {
  if (!version.startsWith(`${image.major}.`)) return `is version ${version}`;
  if (glibc === undefined) return 'needs a C library other than glibc';
  if (isNewer(glibc, image.glibc)) return `needs glibc ${glibc}`;
  if (shared.length > 0) return `needs its distribution's ${shared.join(', ')}`;
  return undefined;
}

function isNewer(one: string, other: string): boolean {
  return one.localeCompare(other, 'en', { numeric: true }) > 0;
}
