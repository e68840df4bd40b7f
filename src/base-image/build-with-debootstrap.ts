import type { EnginePort } from '../engine/port/engine-port.ts';
import { OffsiteError } from '../offsite-error.ts';
import { debootstrapObstacle } from './debootstrap-obstacle.ts';
import { finishRoot } from './finish-root.ts';
import type { CaBundle } from './host-certificates.ts';
import { findHostProgram } from './host-program.ts';
import { importRoot } from './import-root.ts';
import { installDebianPackages } from './install-debian-packages.ts';
import type { During } from './progress.ts';
import { putNode } from './put-node.ts';
import type { BaseImageRecipe } from './recipe.ts';
import { temporaryRoot } from './temporary-root.ts';
import { unpackDebian } from './unpack-debian.ts';

export interface DebootstrapBuild {
  engine: EnginePort;
  recipe: BaseImageRecipe;
  log: (line: string) => void;
  during: During;
  env: NodeJS.ProcessEnv;
  caBundle?: CaBundle;
  signal?: AbortSignal;
  /** Why the registry's way failed; told again when this way is closed too. */
  registryError: OffsiteError;
}

/** An unpacked root of 400 MB, the packages it came from, and npm. */
const neededBytes = 1.2e9;

/**
 * Makes the image from Debian's packages, npm's registry and our own Node binary, without a container registry.
 * Throws an infrastructure `OffsiteError` when this host can't, saying what to do.
 */
export async function buildWithDebootstrap(build: DebootstrapBuild): Promise<void> {
  const { engine, recipe, during, env, caBundle, signal } = build;
  const mirror = env.OFFSITE_DEBIAN_MIRROR || undefined;
  await prepareHost(build);
  await using place = await temporaryRoot(neededBytes);
  const { root, scratch } = place;
  await during(`Unpacking Debian ${recipe.debianSuite}`, () =>
    unpackDebian({ root, recipe, mirror, env, signal }),
  );
  await during(`Adding Node ${recipe.nodeMajor} and npm`, () =>
    putNode({ root, scratch, recipe, env, caBundle, signal }),
  );
  await finishRoot({ root, recipe, ownMirror: mirror !== undefined, signal });
  await during('Importing it into the engine', () => importRoot({ engine, root, recipe, env, signal }));
}

async function prepareHost({
  engine,
  recipe,
  during,
  env,
  signal,
  registryError,
}: DebootstrapBuild): Promise<void> {
  const hasDebootstrap = (await findHostProgram('debootstrap', env)) !== undefined;
  const { arch: engineArch } = await engine.facts(signal);
  const obstacle = debootstrapObstacle({
    platform: process.platform,
    uid: process.geteuid?.(),
    hasDebootstrap,
    hasAptGet: (await findHostProgram('apt-get', env)) !== undefined,
    mayInstall: env.OFFSITE_NO_INSTALL !== '1',
    hostArch: process.arch,
    engineArch,
  });
  if (obstacle !== undefined) {
    throw new OffsiteError(
      `There is no base image. ${registryError.message}\nIt could not be made from Debian packages either: ${obstacle}.`,
      {
        code: 'BASE_IMAGE_UNAVAILABLE',
        kind: 'infrastructure',
        hint:
          `Let the engine reach a registry and pull ${recipe.registryImage} (or 'docker load' that image), ` +
          'run this as root on a Debian-like Linux beside the engine, or name an image of your own in the sandbox settings.',
        cause: registryError,
      },
    );
  }
  if (hasDebootstrap) return;
  await during('Installing debootstrap', () =>
    installDebianPackages({ packages: ['debootstrap', 'debian-archive-keyring'], env, signal }),
  );
}
