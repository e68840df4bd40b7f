import { existsSync } from 'node:fs';
import { mkdir, mkdtempDisposable, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/base/clock.ts';
import { runHostProgram } from '../../src/base/host-program.ts';
import { announcer } from './announcer.ts';
import { ensurePip } from './wheel-program.ts';

/**
 * A program of PyPI that checks manifests against the schemas of Kubernetes' own API, which it brings along.
 */
const validator = {
  package: 'kubernetes-validate',
  version: '1.37.0',
  title: 'kubernetes-validate',
  hint: "Install pip: 'sudo apt-get install python3-pip' on Debian.",
};

/** Where the package is kept, for PYTHONPATH. */
const folder = fileURLToPath(
  new URL(`../../node_modules/.cache/${validator.package}-${validator.version}`, import.meta.url),
);
const installMs = 600_000;
const checkMs = 120_000;

/** Makes sure that the tests have the program. Throws an `input` error that says what the user has to do. */
export async function ensureKubernetesValidate(env: NodeJS.ProcessEnv, signal?: AbortSignal): Promise<void> {
  const { log, during } = announcer(process.stdout, systemClock);
  const what = `${validator.package}==${validator.version}`;
  if (!existsSync(folder)) {
    await ensurePip(validator, env, signal);
    await mkdir(dirname(folder), { recursive: true });
    await using partial = await mkdtempDisposable(`${folder}-`);
    const target = join(partial.path, 'whole');
    const args = [
      '-m',
      'pip',
      'install',
      '--quiet',
      '--no-compile',
      '--only-binary',
      ':all:',
      '--target',
      target,
    ];
    await during(`Installing ${what}`, () =>
      runHostProgram({
        command: 'python3',
        args: [...args, what],
        purpose: `install ${what}`,
        env,
        signal,
        deadlineMs: installMs,
      }),
    );
    await rename(target, folder);
  }
  log(`${validator.title}: ${folder}`);
}

/**
 * Checks the documents of files against the schemas of a version of Kubernetes, and refuses keys that these
 * do not name. Resolves with one line for each document: `<file> passed for …`. Rejects with what is wrong.
 */
export async function validateManifests(files: readonly string[], version: string): Promise<string[]> {
  const said = await runHostProgram({
    command: 'python3',
    args: ['-m', 'kubernetes_validate', '--strict', '--kubernetes-version', version, ...files],
    purpose: 'check the manifests',
    env: { ...process.env, PYTHONPATH: folder },
    deadlineMs: checkMs,
  });
  const lines = said.trim().split('\n');
  // A document whose kind has no schema is a warning for the program, and a mistake for us.
  const others = lines.filter((line) => !line.startsWith('INFO '));
  if (others.length > 0) throw new Error(others.join('\n'));
  return lines.map((line) => line.slice('INFO '.length));
}
