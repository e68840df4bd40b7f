import { runHostProgram, withSystemPath } from '../base/host-program.ts';
import { OffsiteError } from '../base/offsite-error.ts';

export interface DebianInstall {
  packages: readonly string[];
  env: NodeJS.ProcessEnv;
  signal?: AbortSignal;
}

/** How long to wait for another apt to finish, in seconds. */
const lockTimeout = 120;

/**
 * Installs Debian packages on the host, as root, without questions. Fetches package lists only if the first
 * attempt fails, because they may be missing or outdated. Throws an infrastructure `OffsiteError` with apt's
 * last lines.
 */
export async function installDebianPackages({ packages, env, signal }: DebianInstall): Promise<void> {
  const apt = (args: string[], purpose: string) =>
    runHostProgram({
      command: 'apt-get',
      args: ['-q', '-o', `DPkg::Lock::Timeout=${lockTimeout}`, ...args],
      purpose,
      env: { ...withSystemPath(env), DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' },
      deadlineMs: 600_000,
      signal,
    });
  const purpose = `install ${packages.join(' ')}`;
  const install = () => apt(['install', '-y', '--no-install-recommends', ...packages], purpose);
  const first = await outcomeOf(install());
  if (first === undefined) return;
  // One unreachable source makes `update` fail even if the package's source works: only the install counts.
  const update = await outcomeOf(apt(['update'], 'update the package lists'));
  const second = await outcomeOf(install());
  if (second === undefined) return;
  throw new OffsiteError(
    [second, update]
      .filter((error) => error !== undefined)
      .map((error) => error.message)
      .join('\n'),
    {
      code: 'DEBIAN_INSTALL_FAILED',
      kind: 'infrastructure',
      hint: `Run 'apt-get update && apt-get install ${packages.join(' ')}' yourself to see what is wrong.`,
      cause: second,
    },
  );
}

/** The expected error of some work, or undefined if it succeeded. */
async function outcomeOf(work: Promise<unknown>): Promise<OffsiteError | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    if (error instanceof OffsiteError) return error;
    throw error;
  }
}
