import { infrastructureError, OffsiteError } from '../base/offsite-error.ts';
import { commandOutput } from '../bounds/sandbox.ts';
import type { ArchivedType } from '../engine/archive/entries.ts';
import type { ArchiveCopy } from '../engine/archive/read.ts';
import type { Container } from '../engine/container.ts';
import { isSuccess, printedBy } from '../engine/exec/exec-request.ts';

export type WorkspaceCopy = { kind: 'copied' } | { kind: 'refused'; why: string };

/**
 * What to copy. `nothing`: the workspace was not touched. `additions`: no file was deleted, so the fresh
 * sandbox's workspace need not be emptied first. `all`: empty it, then copy everything.
 */
export type Carry = 'nothing' | 'additions' | 'all';

const refusals: Readonly<Record<string, string>> = {
  ENGINE_NO_FOLDER: 'is no longer a folder',
  ENGINE_NOT_FOUND: 'no longer exists',
  ENGINE_TOO_LARGE: 'is larger than the sandbox allows',
};

/**
 * Removes the folder $1. If its parent is not writable, removes all entries in it instead, from a list of
 * names that may be of any length. Uses only programs that every image has.
 */
const empty = `rm -rf -- "$1" 2>&- || {
  cd "$1" && printf '%s\\0' ./* ./.[!.]* ./..?* | xargs -0 rm -rf --
}`;

export interface CopyRequest {
  /** The maximum number of bytes to copy. A sparse file counts with its full length. */
  maxBytes: number;
  /** Default: `all`. */
  carry?: Carry | undefined;
  /** The workspace as it was read, if it is still so. */
  packed?: ArchiveCopy | undefined;
  /** Whether something stays behind, by its path in the workspace. Default: all is copied. */
  leftOut?: ((path: string) => boolean) | undefined;
  signal: AbortSignal;
}

/**
 * Makes the workspace of `fresh` a copy of that of `graded`. Nothing may run in `graded` meanwhile, and
 * changes in `fresh` do not reach it. Refused if there is no folder to copy, or if it is larger than
 * `maxBytes`. Takes two round trips, or one if it is `packed`, and three more if the workspace must be
 * emptied first.
 */
export async function copyWorkspace(
  graded: Container,
  fresh: Container,
  { maxBytes, carry = 'all', packed, leftOut, signal }: CopyRequest,
): Promise<WorkspaceCopy> {
  if (carry === 'nothing') return { kind: 'copied' };
  if (carry === 'all') await emptyWorkspace(fresh, signal);
  try {
    const { workingDir } = graded;
    const again = leftOut || (packed?.bytes ?? 0) > maxBytes ? undefined : packed?.read();
    if (again) await fresh.fill({ maxBytes, signal }, (stop) => fresh.unpack(workingDir, again, stop));
    else {
      const keeps = (path: string, type: ArchivedType) => {
        if (path === '' && type !== 'folder') throw noFolder(workingDir);
        return !leftOut?.(path);
      };
      // The disk limit bounds the number of entries.
      const request = { keeps, links: 'all', maxBytes, maxEntries: Number.POSITIVE_INFINITY } as const;
      await graded.carryTo(fresh, workingDir, { ...request, signal });
    }
    return { kind: 'copied' };
  } catch (error) {
    const why = error instanceof OffsiteError ? refusals[error.code] : undefined;
    if (why === undefined) throw error;
    return { kind: 'refused', why };
  }
}

function noFolder(path: string): OffsiteError {
  return infrastructureError('ENGINE_NO_FOLDER', `${path} is not a folder`);
}

/** Removes the workspace of a container, or all that is in it. Throws `WORKSPACE_NOT_EMPTIED`. */
export async function emptyWorkspace(fresh: Container, signal: AbortSignal): Promise<void> {
  const argv = ['/bin/sh', '-c', empty, 'sh', fresh.workingDir];
  const result = await fresh.exec({ argv, cwd: '/', timeoutMs: commandOutput.time.workspaceCopy, signal });
  signal.throwIfAborted();
  if (isSuccess(result)) return;
  const said = printedBy(result, 'stderr').trim();
  throw infrastructureError(
    'WORKSPACE_NOT_EMPTIED',
    `The workspace of a fresh sandbox could not be emptied: ${said || result.ended}`,
  );
}

/** Environment variables that give git settings, which the repository's own settings cannot override. */
export function gitSettings(settings: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(settings).flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(Object.keys(settings).length), ...Object.fromEntries(entries) };
}

/** A copied file has another inode, and times rounded to seconds. Git must not take that for a change. */
export const copiedRepository = { 'core.checkStat': 'minimal', 'core.trustctime': 'false' } as const;

/**
 * Git refuses a repository that another user owns, as the workspace is. And when a validator asks git for the
 * status, git must not run the hooks and settings that the agent wrote.
 */
export const validatorGit = gitSettings({
  'safe.directory': '*',
  'core.fsmonitor': 'false',
  'core.hooksPath': '/dev/null',
  ...copiedRepository,
});
