import type { Container } from '../engine/container.ts';
import { OffsiteError } from '../offsite-error.ts';

export type WorkspaceCopy = { kind: 'copied' } | { kind: 'refused'; why: string };

const refusals: Readonly<Record<string, string>> = {
  ENGINE_NO_FOLDER: 'is no folder any more',
  ENGINE_NOT_FOUND: 'is not there any more',
  ENGINE_TOO_LARGE: 'is larger than the sandbox may be',
};

/** Takes everything out of the folder $1, hidden names included, and needs nothing but what every image has. */
const empty = 'cd "$1" && rm -rf -- ./..?* ./.[!.]* ./*';

/**
 * Makes the workspace of `fresh` what it is in `graded`, in which nothing may run. It is a copy: whatever is done to it there, the
 * graded one stays as it is. Refused where there is no folder to copy, or where it is larger than `maxBytes`.
 */
export async function copyWorkspace(
  graded: Container,
  fresh: Container,
  workspace: string,
  { maxBytes, signal }: { maxBytes: number; signal: AbortSignal },
): Promise<WorkspaceCopy> {
  await fresh.exec({ argv: ['/bin/sh', '-c', empty, 'sh', workspace], cwd: '/', timeoutMs: 120_000, signal });
  signal.throwIfAborted();
  try {
    await graded.copyTo(fresh, workspace, { maxBytes, signal });
    return { kind: 'copied' };
  } catch (error) {
    const why = error instanceof OffsiteError ? refusals[error.code] : undefined;
    if (why === undefined) throw error;
    return { kind: 'refused', why };
  }
}
