import { posix } from 'node:path';
import { OffsiteError } from '../../base/offsite-error.ts';
import { carriedArtifacts } from '../../bounds/sandbox.ts';
import { taskRows } from '../../bounds/tasks.ts';
import type { ArchivedType, NewEntry } from '../../engine/archive/entries.ts';
import type { Container } from '../../engine/container.ts';
import { isSuccess, printedBy } from '../../engine/exec/exec-request.ts';
import type { BroughtArtifacts, BroughtWorkspace, CarriedArtifact } from '../../suite/case-tests.ts';
import { patchedFiles, wholePatch } from '../../tasks/swe-bench/row.ts';
import { type Carry, copiedRepository, gitSettings } from '../../validate/workspace-copy.ts';
import { taskFailure } from '../blame.ts';
import { globMatcher } from '../collect/read-workspace.ts';
import { gradingEnvironment } from '../prepare/environment.ts';
import type { StartedSandbox } from '../prepare/started-sandbox.ts';

/**
 * Variables for tests that run the workspace of an agent. Python reads no bytecode beside a source file,
 * because that could be another program than its source.
 */
export const ofWorkspace = {
  ...gitSettings({ 'safe.directory': '*', ...copiedRepository }),
  PYTHONDONTWRITEBYTECODE: '1',
  PYTHONPYCACHEPREFIX: '/proc/no-bytecode',
};

const patchPath = '/offsite/test.patch';

/**
 * Restores the files in `$@` to their state at the commit `$BASE`, and applies the test patch. Prints the
 * files that have a name in `$RESTORED`, each followed by a NUL.
 */
const applyPatch = `
set -e
count=$1; shift
before=("\${@:1:count}"); after=("\${@:count+1}")
if [ \${#after[@]} -gt 0 ]; then rm -rf -- "\${after[@]}"; fi
if [ $count -gt 0 ]; then git checkout --quiet "$BASE" -- "\${before[@]}"; fi
if [ -s ${patchPath} ]; then git apply --whitespace=nowarn ${patchPath}; fi
rm -f ${patchPath} || :
shopt -s globstar dotglob nullglob
IFS=/
for name in $RESTORED; do
  for file in **/"$name"; do case /$file in /.git/*) ;; *) printf '%s\\0' "$file" ;; esac; done
done`;

/** Removes everything but the paths in the standard input, each of which has a NUL after it. */
const emptyExcept = `
declare -A kept above
while IFS= read -r -d '' path; do
  kept[$path]=1
  while [[ $path == */* ]]; do path=\${path%/*}; above[$path]=1; done
done
shopt -s dotglob nullglob
empty() {
  local each others=()
  for each in "$1"*; do
    if [[ \${kept[$each]-} ]]; then :
    elif [[ \${above[$each]-} && -d $each && ! -L $each ]]; then empty "$each/"
    else others+=("./$each"); fi
  done
  if ((\${#others[@]})); then rm -rf -- "\${others[@]}"; fi
}
empty ''`;

interface BringRequest {
  carry: Carry | undefined;
  /** Whether something stays behind, by its path in the workspace. Undefined if all is brought. */
  leftOut: ((path: string) => boolean) | undefined;
  maxBytes: number;
  signal: AbortSignal;
}

/**
 * Applies the test patch to an untouched workspace, and then brings the workspace of an agent into it. The
 * files of the patch, those with a restored name, and the git repository stay as they are in the untouched
 * workspace. So git and the patch never see what the agent wrote, such as hooks, settings and attributes.
 * What would be imported in place of a file of the patch is not brought.
 * Throws a `TrialFailure` of kind `task` if the patch cannot be applied.
 */
export async function bringWorkspace(
  from: Container,
  { container: to, closedEnv }: Pick<StartedSandbox, 'container' | 'closedEnv'>,
  { testPatch, base, restored }: BroughtWorkspace,
  { carry = 'all', leftOut, maxBytes, signal }: BringRequest,
): Promise<Brought> {
  const files = patchedFiles(testPatch);
  if ('problem' in files) throw taskFailure('validate', `the test patch cannot be read: ${files.problem}`);
  const { before, after } = files;
  await to.put([{ path: patchPath, content: wholePatch(testPatch) }], '/', signal);
  const runIn = async (script: string, args: string[], stdin: string, env: Record<string, string>) => {
    const result = await to.exec({
      argv: ['bash', '-c', script, 'bash', ...args],
      cwd: to.workingDir,
      env: { ...gradingEnvironment({}, to), ...ofWorkspace, ...closedEnv, ...env },
      timeoutMs: taskRows.time.workspace,
      stdin,
      signal,
    });
    signal.throwIfAborted();
    if (isSuccess(result)) return result.stdout;
    const said = printedBy(result, 'stderr').trim() || result.ended;
    throw taskFailure('validate', 'the test patch cannot be applied in the image', said);
  };
  const isNew = after.filter((path) => !before.includes(path));
  const args = [String(before.length), ...before, ...isNew];
  const listed = await runIn(applyPatch, args, '', { BASE: base, RESTORED: restored.join('/') });
  if (listed.truncated) throw taskFailure('validate', 'the image has too many files that are to be restored');
  if (carry === 'nothing') return { kind: 'brought', leftOut: [] };
  const kept = new Set([
    '.git',
    ...before,
    ...after,
    ...listed.text.split('\0').filter((path) => path !== ''),
  ]);
  if (carry === 'all') await runIn(emptyExcept, [], [...kept].map((path) => `${path}\0`).join(''), {});
  const shadows = after.flatMap(shadowsOf);
  // A link may lead to a package, and a hard link may be one of a link.
  const modules = new Set(after.map((path) => path.replace(/\.py$/, '')));
  const staysBehind = (path: string, type: ArchivedType) =>
    leftOut?.(path) ||
    shadows.some((one) => one.test(path)) ||
    (['symlink', 'hardlink'].includes(type) && modules.has(path));
  return carryRest(from, to, { kept, restored: new Set(restored), staysBehind }, { maxBytes, signal });
}

/**
 * The paths that Python or a bundler of JavaScript imports in place of a source file: a package or a compiled
 * module with its name, or the same name with another ending. A folder without `__init__` shadows nothing,
 * and often holds the data of a test.
 */
function shadowsOf(path: string): RegExp[] {
  const [, stem = '', ending = ''] = /^(.*)\.(py|[cm]?[jt]sx?)$/.exec(path) ?? [];
  const name = stem.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  if (ending === '') return [];
  if (ending !== 'py') return [new RegExp(`^${name}(\\.[cm]?[jt]sx?)?$`)];
  return [
    new RegExp(`^${name}(/__init__)?\\.([\\w-]+\\.)?(so|pyc|pyd)$`),
    new RegExp(`^${name}/__init__\\.py$`),
  ];
}

async function carryRest(
  from: Container,
  to: Container,
  {
    kept,
    restored,
    staysBehind,
  }: {
    kept: ReadonlySet<string>;
    restored: ReadonlySet<string>;
    staysBehind: (path: string, type: ArchivedType) => boolean | undefined;
  },
  { maxBytes, signal }: { maxBytes: number; signal: AbortSignal },
): Promise<Brought> {
  const above = new Set(['', ...[...kept].flatMap(foldersAbove)]);
  const keeps = (path: string, type: ArchivedType) =>
    !kept.has(path) &&
    !staysBehind(path, type) &&
    !restored.has(posix.basename(path)) &&
    (type === 'folder' || !above.has(path));
  const maxEntries = carriedArtifacts.count.entries;
  try {
    const request = { keeps, links: 'all' as const, maxBytes, maxEntries, signal };
    const { leftOut } = await from.carryTo(to, to.workingDir, request);
    return { kind: 'brought', leftOut: leftOut.map((path) => posix.join(to.workingDir, path)) };
  } catch (error) {
    const why = error instanceof OffsiteError ? refusals[error.code] : undefined;
    if (why === undefined) throw error;
    return { kind: 'refused', why: `the workspace ${why}` };
  }
}

const refusals: Readonly<Record<string, string>> = {
  ENGINE_NOT_FOUND: 'no longer exists',
  ENGINE_TOO_LARGE: 'is more than the sandbox allows',
};

/** `refused`: something is in the way that only the agent, or the author, can have put there. */
type Brought =
  /** With the absolute paths of what was left out: devices, links that lead elsewhere. */
  { kind: 'brought'; leftOut: string[] } | { kind: 'refused'; why: string };

/**
 * Brings the artifacts of an agent to the same paths of another sandbox. An artifact that does not exist is
 * left out; the tests will notice. Nothing may run in the agent's sandbox, and no program of it takes part.
 * An artifact behind a link is refused: the link could lead to anything.
 *
 * @param maxBytes of all artifacts
 */
export async function bringArtifacts(
  from: Container,
  to: Container,
  { artifacts, sealed }: BroughtArtifacts,
  { maxBytes, signal }: { maxBytes: number; signal: AbortSignal },
): Promise<Brought> {
  const left = { bytes: maxBytes, entries: carriedArtifacts.count.entries };
  const leftOut: string[] = [];
  for (const artifact of artifacts) {
    const { path } = artifact;
    const above = await aboveOf(from, path, signal);
    if (above.kind === 'link')
      return { kind: 'refused', why: `the artifact ${path} cannot be read: ${above.path} is not a folder` };
    if (above.kind === 'nothing') continue;
    try {
      const keeps = filterOf(artifact, sealed);
      const limits = { maxBytes: left.bytes, maxEntries: left.entries, signal };
      const carried = await from.carryTo(to, path, { keeps, links: 'inside', ...limits });
      left.bytes -= carried.bytes;
      left.entries -= carried.entries;
      leftOut.push(...carried.leftOut.map((below) => posix.join(path, below)));
    } catch (error) {
      if (!(error instanceof OffsiteError)) throw error;
      if (error.code === 'ENGINE_TOO_LARGE')
        return {
          kind: 'refused',
          why: `the artifact ${path}, with those before it, is more than the sandbox allows`,
        };
      if (error.code !== 'ENGINE_NOT_FOUND') throw error;
    }
  }
  return { kind: 'brought', leftOut };
}

/** Whether everything above a path is a folder. The engine follows links on the way to a path. */
async function aboveOf(
  container: Container,
  path: string,
  signal: AbortSignal,
): Promise<{ kind: 'folders' | 'nothing' } | { kind: 'link'; path: string }> {
  for (const above of foldersAbove(path)) {
    const kind = await container.kindOf(above, signal);
    if (kind === 'nothing') return { kind };
    if (kind !== 'folder') return { kind: 'link', path: above };
  }
  return { kind: 'folders' };
}

/** Whether something below an artifact is brought. */
function filterOf({ path, exclude }: CarriedArtifact, sealed: readonly string[]) {
  const isBelow = (inner: string, folder: string) => inner === folder || inner.startsWith(`${folder}/`);
  const closed = sealed.filter((folder) => !isBelow(path, folder));
  const isExcluded = globMatcher(
    exclude.flatMap((glob) => [glob, `**/${glob}`]),
    false,
  );
  return (below: string) =>
    below === '' ||
    (!isExcluded(below) && !closed.some((folder) => isBelow(posix.join(path, below), folder)));
}

/** `/logs` and `/logs/a` for `/logs/a/b`; `a` and `a/b` for `a/b/c`. */
export function foldersAbove(path: string): string[] {
  const parts = path.split('/');
  return parts.slice(0, -1).flatMap((_, index) => parts.slice(0, index + 1).join('/') || []);
}

/** Entries that leave an empty folder: a file replaces a folder and all that is in it, or a link. */
export function emptyFolder(path: string): NewEntry[] {
  return [
    { path, content: '' },
    // Programs may run there as another user than root.
    { path, folder: true, mode: 0o777 },
  ];
}
