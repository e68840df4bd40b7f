import { access } from 'node:fs/promises';
import { execa } from 'execa';
import { runHostProgram, withSystemPath } from './host-program.ts';
import type { BaseImageRecipe } from './recipe.ts';

export interface DebianUnpack {
  /** An empty folder. */
  root: string;
  recipe: BaseImageRecipe;
  /** Undefined: debootstrap's own, which is Debian's. */
  mirror?: string;
  env: NodeJS.ProcessEnv;
  signal?: AbortSignal;
}

const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';

/**
 * Unpacks and configures a minimal Debian with the recipe's packages; needs root. The packages are checked
 * against Debian's keyring, so that plain HTTP is no risk.
 */
export async function unpackDebian({ root, recipe, mirror, env, signal }: DebianUnpack): Promise<void> {
  const debootstrap = [
    'debootstrap',
    '--variant=minbase',
    `--include=${recipe.debianPackages.join(',')}`,
    // Without a keyring debootstrap would go on unchecked; then it is told to find its own or stop.
    (await exists(keyring)) ? `--keyring=${keyring}` : '--force-check-gpg',
    recipe.debianSuite,
    root,
    ...(mirror === undefined ? [] : [mirror]),
  ];
  const [command = '', ...args] = [...(await ownNamespaces(env)), ...debootstrap];
  await runHostProgram({
    command,
    args,
    purpose: `unpack Debian ${recipe.debianSuite} from ${mirror ?? 'its mirror'}`,
    env: { ...withSystemPath(env), LC_ALL: 'C.UTF-8' },
    deadlineMs: 900_000,
    signal,
    hint: 'OFFSITE_DEBIAN_MIRROR names another mirror.',
  });
}

/**
 * The words that run a program with mounts and processes of its own, so that when it is stopped half-way its
 * children go with it and nothing stays mounted. None where the kernel won't let us.
 */
async function ownNamespaces(env: NodeJS.ProcessEnv): Promise<string[]> {
  const words = ['unshare', '--mount', '--pid', '--fork', '--kill-child'];
  const [command = '', ...args] = [...words, 'true'];
  const trial = await execa(command, args, { env: withSystemPath(env), reject: false, timeout: 10_000 });
  return trial.failed ? [] : words;
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
