import { existsSync } from 'node:fs';
import { mkdir, mkdtempDisposable, rename, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { findHostProgram, runHostProgram, withSystemPath } from '../../src/base/host-program.ts';
import { OffsiteError } from '../../src/base/offsite-error.ts';
import { cacheFolder } from './debian-root.ts';
import type { EngineGround } from './test-engine.ts';

/** A program that Go builds from a module of its proxy. */
export interface GoProgram {
  /** `github.com/moby/moby/v2/cmd/dockerd`; its last part is the program's name. */
  package: string;
  version: string;
  /**
   * The module of the package, for proxies that refuse to say that the package's own path is not a module.
   */
  module?: string;
  /** Options of the build. */
  options?: readonly string[];
}

const buildMs = 3_600_000;

/** The path of the program, which is built once, and takes many minutes. Needs Go 1.21 or newer. */
export async function goProgram(program: GoProgram, ground: EngineGround): Promise<string> {
  const { env, signal } = ground;
  const name = basename(program.package);
  const folder = join(cacheFolder(env), `${name}-${program.version}`);
  const path = join(folder, name);
  if (existsSync(path)) return path;
  const go = (await findHostProgram('go', env)) ?? '/usr/local/go/bin/go';
  if (!existsSync(go)) throw missing(name);
  await mkdir(folder, { recursive: true });
  // Its modules and its cache take gigabytes, and are needed once.
  await using work = await mkdtempDisposable(join(folder, 'build-'));
  const at = (part: string) => join(work.path, part);
  const building = {
    ...withSystemPath(env),
    GOPATH: at('path'),
    GOCACHE: at('cache'),
    GOBIN: at('bin'),
    CGO_ENABLED: '0',
    GOFLAGS: '-modcacherw',
  };
  const run = async (all: string[][]) => {
    for (const args of all)
      await runHostProgram({
        command: go,
        args,
        purpose: `build ${name}`,
        env: building,
        deadlineMs: buildMs,
        signal,
      });
  };
  await ground.during(`Building ${name} ${program.version}`, async () =>
    run(await argumentsOf(program, work.path)),
  );
  await rename(at(join('bin', name)), path);
  return path;
}

/** The calls of Go, one after the other. If the module is named, a module of our own requires it. */
async function argumentsOf(program: GoProgram, folder: string): Promise<string[][]> {
  const { module, version, options = [] } = program;
  if (module === undefined) return [['install', ...options, `${program.package}@${version}`]];
  await writeFile(join(folder, 'go.mod'), `module build\n\nrequire ${module} ${version}\n`);
  await writeFile(join(folder, 'build.go'), `package build\n\nimport _ "${program.package}"\n`);
  return [
    ['-C', folder, 'mod', 'tidy'],
    ['-C', folder, 'install', ...options, program.package],
  ];
}

function missing(name: string): OffsiteError {
  return new OffsiteError(`${name} is built with Go, and this machine has none.`, {
    code: 'GO_MISSING',
    kind: 'input',
    hint: 'Install Go (https://go.dev/dl), or test with an engine of Debian.',
  });
}
