import { access, chmod, copyFile, mkdir, realpath, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { OffsiteError } from '../offsite-error.ts';
import { runHostProgram, withSystemPath } from './host-program.ts';
import { type NodePlacement, putNpm } from './put-npm.ts';

/** Puts Node and npm under the root's /usr/local and makes sure that they run there; needs root, for chroot. */
export async function putNode(placement: NodePlacement): Promise<void> {
  const { root, recipe, signal } = placement;
  const programs = join(root, 'usr/local/bin');
  const modules = join(root, 'usr/local/lib/node_modules');
  await mkdir(modules, { recursive: true });
  const node = join(programs, 'node');
  await copyFile(await nodeBinary(recipe.nodeMajor), node);
  await chmod(node, 0o755);

  await putNpm(placement, join(modules, 'npm'));
  for (const name of ['npm', 'npx']) {
    await chmod(join(modules, 'npm/bin', `${name}-cli.js`), 0o755);
    await symlink(`../lib/node_modules/npm/bin/${name}-cli.js`, join(programs, name));
  }
  for (const program of ['node', 'npm', 'git', 'python3', 'curl']) {
    await runHostProgram({
      command: 'chroot',
      args: [root, program, '--version'],
      purpose: `run ${program} inside the new base image`,
      env: { PATH: withSystemPath({ PATH: '/usr/local/bin' }).PATH, HOME: '/root' },
      cwd: '/',
      deadlineMs: 30_000,
      signal,
    });
  }
}

/** The binary that npm installed with us, else the one that runs us, where its version is right. */
async function nodeBinary(major: number): Promise<string> {
  const running = process.versions.node.startsWith(`${major}.`) ? [process.execPath] : [];
  for (const path of [...installedBinaries(), ...running]) if (await isThere(path)) return realpath(path);
  throw new OffsiteError(`The base image needs a Node ${major} binary, and there is none on this host.`, {
    code: 'BASE_IMAGE_NO_NODE',
    kind: 'infrastructure',
    hint: `Run Offsite under Node ${major}.`,
  });
}

/** Node comes as a package of npm's; there may be none where Offsite was installed in another way. */
function installedBinaries(): string[] {
  const { resolve } = createRequire(import.meta.url);
  return ['node', `node-${process.platform}-${process.arch}`].flatMap((name) => {
    try {
      return [join(dirname(resolve(`${name}/package.json`)), 'bin/node')];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return [];
      throw error;
    }
  });
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
