import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runHostProgram } from '../../src/base/host-program.ts';
import { filesOptions, type PythonCli, requirementsOf, uv } from '../../src/harness/python-cli.ts';
import type { Processor } from './lock-text.ts';

/** The Python and the C library of each release of Debian, which keeps their versions. */
const releases: Readonly<Record<PythonCli['debian'], { python: string; libc: string }>> = {
  bookworm: { python: '3.11.2', libc: 'manylinux_2_36' },
  // It has glibc 2.41. uv knows none that is newer than 2.40.
  trixie: { python: '3.13.5', libc: 'manylinux_2_40' },
};

const deadlineMs = 600_000;

/**
 * Installs uv into `folder`, in the version that also installs the CLIs. Resolves with a function that
 * resolves the newest dependencies of a CLI, as lines `name==version` for each processor.
 *
 * uv's `--universal` would resolve once for all platforms, but it ignores that some markers are never true.
 * It fails, because OpenHands' browser-use names, with such a marker, a package for macOS that has no wheels
 * for Linux.
 */
export async function resolver(folder: string, signal: AbortSignal) {
  const run = (command: string, args: readonly string[], purpose: string) =>
    runHostProgram({ command, args, purpose, env: process.env, deadlineMs, signal });
  const at = (name: string) => join(folder, name);
  const installing = ['install', '--quiet', '--no-compile', '--only-binary', ':all:', '--target', at('uv')];
  await run('python3', ['-m', 'pip', ...installing, uv], `install ${uv}`);

  return async (cli: PythonCli): Promise<Record<Processor, string[]>> => {
    const { python, libc } = releases[cli.debian];
    await writeFile(at('wanted'), requirementsOf(cli).join('\n'));
    await writeFile(at('without'), (cli.without ?? []).join('\n'));
    const resolved = async (processor: Processor, output: string): Promise<string[]> => {
      const options = [
        '--quiet',
        '--no-config',
        '--no-python-downloads',
        '--no-header',
        '--no-annotate',
        '--python-version',
        python,
        '--python-platform',
        `${processor}-${libc}`,
        '--excludes',
        at('without'),
        ...filesOptions(cli),
        '--output-file',
        output,
      ];
      const purpose = `resolve ${cli.package} for ${processor}`;
      await run(at('uv/bin/uv'), ['pip', 'compile', ...options, at('wanted')], purpose);
      return (await readFile(output, 'utf8')).trim().split('\n');
    };
    const [first, second] = [`${cli.package}-x86_64`, `${cli.package}-aarch64`].map(at) as [string, string];
    const x86_64 = await resolved('x86_64', first);
    // uv prefers the versions that its output file has, so the processors differ only where they must.
    await copyFile(first, second);
    return { x86_64, aarch64: await resolved('aarch64', second) };
  };
}
