import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, posix, resolve } from 'node:path';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import type { Config } from './config-file.ts';
import { type Profile, profileOf } from './plan.ts';
import type { Text } from './suite-file.ts';
import { readText } from './yaml-file.ts';

/** A profile of the configuration with its scripts and files read. Throws an `input` error where one cannot be. */
export function loadProfile(name: string | undefined, config: Config): Profile {
  const source = name === undefined ? undefined : config.profiles[name];
  if (!source || config.file === undefined) return profileOf({ name });
  const folder = dirname(config.file);
  const text = (part: Text | undefined) =>
    typeof part === 'object' ? readText(resolve(folder, part.file)) : part;
  return {
    name,
    install: text(source.install),
    run: text(source.run),
    version: source.version,
    args: source.args ?? [],
    env: source.env ?? {},
    files: [
      ...Object.entries(source.files ?? {}).map(([path, file]) => ({
        path,
        content: read(() => readFileSync(resolve(folder, file)), file, `profiles.${name}.files`, config.file),
      })),
      ...Object.entries(source.folders ?? {}).flatMap(([path, beside]) =>
        read(
          () => filesBelow(resolve(folder, beside), path),
          beside,
          `profiles.${name}.folders`,
          config.file,
        ),
      ),
    ],
    mcpServers: source.mcpServers ?? {},
    maxTurns: source.maxTurns,
  };
}

/** Every file of a folder, under `path` in the sandbox; executable ones stay so. Links are read as what they point to. */
function filesBelow(folder: string, path: string): Profile['files'] {
  return readdirSync(folder)
    .toSorted()
    .flatMap((name) => {
      const file = join(folder, name);
      const target = posix.join(path, name);
      const stats = statSync(file);
      if (stats.isDirectory()) return filesBelow(file, target);
      return [{ path: target, content: readFileSync(file), mode: stats.mode & 0o100 ? 0o755 : 0o644 }];
    });
}

function read<Result>(
  reading: () => Result,
  path: string,
  where: string,
  configFile: string | undefined,
): Result {
  try {
    return reading();
  } catch (error) {
    throw new OffsiteError(`${configFile}: ${where}: cannot read ${path}: ${messageOf(error)}`, {
      code: 'FILE_UNREADABLE',
      kind: 'input',
      cause: error,
    });
  }
}
