// Compiles the files of Offsite's own that are in each sandbox, for each machine that it knows, and writes
// them beside their sources. The result is the same everywhere. Needs Python with pip, and PyPI, from which
// it fetches Zig, which is a C compiler too (100 MB). Another output folder may be named as the argument.

import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { runHostProgram } from '../src/base/host-program.ts';
import { hostsText } from '../src/engine/container/hosts-file.ts';
import { ownMachines } from '../src/engine/own-files/volume.ts';
import { runScript } from './run-script.ts';

/** A line of pip's requirements, with the hashes of its wheels for Linux: x86_64, aarch64. */
const zig =
  'ziglang==0.17.1' +
  ' --hash=sha256:ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54' +
  ' --hash=sha256:b7c5f02fccd40f89b999ee16a1f5ddced56e6182370f8affe494bcf8a28cf07e';

const sources = join(import.meta.dirname, '../src/engine/own-files');
const outdir = process.argv[2] ?? sources;

const deadlineMs = 600_000;

await runScript(async (signal) => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-compile-'));
  const at = (name: string) => join(folder.path, name);
  const env = {
    ...process.env,
    PYTHONPATH: at('zig'),
    ZIG_GLOBAL_CACHE_DIR: at('cache'),
    ZIG_LOCAL_CACHE_DIR: at('cache'),
  };
  const python = (purpose: string, ...args: string[]) =>
    runHostProgram({ command: 'python3', args: ['-m', ...args], purpose, env, deadlineMs, signal });

  await writeFile(at('requirements.txt'), zig);
  const install = ['install', '--quiet', '--no-compile', '--no-deps', '--only-binary', ':all:'];
  const pinned = ['--require-hashes', '--target', at('zig'), '--requirement', at('requirements.txt')];
  await python('install Zig', 'pip', ...install, ...pinned);

  for (const machine of ownMachines) {
    await mkdir(join(outdir, machine), { recursive: true });
    // The sources need only the kernel's headers, which Zig has for this target.
    const zigCc = ['ziglang', 'cc', '-target', `${machine}-linux-musl`];
    const build = async (source: string, output: string, compiling: string[], linking: string[]) => {
      const warnings = ['-std=c17', '-Wall', '-Wextra', '-Werror'];
      const compiled = [...warnings, '-Os', '-ffreestanding', ...compiling, '-c', join(sources, source)];
      const purpose = `compile ${source} for ${machine}`;
      await python(purpose, ...zigCc, ...compiled, '-o', at('object.o'));
      const path = join(outdir, machine, output);
      await python(purpose, ...zigCc, '-nostdlib', '-s', ...linking, at('object.o'), '-o', path);
      console.log(`wrote ${relative('', path)}`);
    };
    await build('init.c', 'init', [`-DHOSTS_LINES=${JSON.stringify(hostsText)}`], ['-static']);
    await build('shield.c', 'shield.so', ['-fPIC'], ['-shared']);
  }
  return 0;
});
