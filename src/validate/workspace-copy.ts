import { commandOutput } from '../bounds/sandbox.ts';
import type { Container } from '../engine/container.ts';
import { OffsiteError } from '../offsite-error.ts';

export type WorkspaceCopy = { kind: 'copied' } | { kind: 'refused'; why: string };

/**
 * What there is to carry over. `nothing`: nobody touched the workspace. `additions`: nothing of it was
 * deleted, so that what the fresh sandbox has need not go first.
 */
export type Carry = 'nothing' | 'additions' | 'all';

const refusals: Readonly<Record<string, string>> = {
  ENGINE_NO_FOLDER: 'is no folder any more',
  ENGINE_NOT_FOUND: 'is not there any more',
  ENGINE_TOO_LARGE: 'is larger than the sandbox may be',
};

/**
 * Removes the folder $1, or where its parent cannot be written, all that is in it: by a list of names without
 * a limit. Needs nothing but what every image has.
 */
const empty = `rm -rf -- "$1" 2>&- || {
  cd "$1" && printf '%s\\0' ./* ./.[!.]* ./..?* | xargs -0 rm -rf --
}`;

export interface CopyRequest {
  /** Bytes that are let through. A sparse file counts with its full length. */
  maxBytes: number;
  /** `all` where it is not known. */
  carry?: Carry | undefined;
  signal: AbortSignal;
}

/**
 * Makes the workspace of `fresh` what it is in `graded`, in which nothing may run. It is a copy: whatever is
 * done to it there, the graded one stays as it is. Refused where there is no folder to copy, or where it is
 * larger than
 * `maxBytes`. Two round trips, five where something must go first.
 */
export async function copyWorkspace(
  graded: Container,
  fresh: Container,
  workspace: string,
  { maxBytes, carry = 'all', signal }: CopyRequest,
): Promise<WorkspaceCopy> {
  if (carry === 'nothing') return { kind: 'copied' };
  if (carry === 'all') await emptied(fresh, workspace, signal);
  try {
    await graded.copyTo(fresh, workspace, { maxBytes, signal });
    return { kind: 'copied' };
  } catch (error) {
    const why = error instanceof OffsiteError ? refusals[error.code] : undefined;
    if (why === undefined) throw error;
    return { kind: 'refused', why };
  }
}

async function emptied(fresh: Container, workspace: string, signal: AbortSignal): Promise<void> {
  const argv = ['/bin/sh', '-c', empty, 'sh', workspace];
  const result = await fresh.exec({ argv, cwd: '/', timeoutMs: commandOutput.time.workspaceCopy, signal });
  signal.throwIfAborted();
  if (result.ended === 'exited' && result.exitCode === 0) return;
  const said = result.ended === 'not-started' ? result.message : result.stderr.text.trim();
  throw new OffsiteError(`The workspace of a fresh sandbox could not be emptied: ${said || result.ended}`, {
    code: 'WORKSPACE_NOT_EMPTIED',
    kind: 'infrastructure',
  });
}
