import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import type { Config } from './config-file.ts';
import type { Profile } from './plan.ts';
import type { Text } from './suite-file.ts';
import { readText } from './yaml-file.ts';

/** A profile of the configuration with its scripts and files read. Throws an `input` error where one cannot be. */
export function loadProfile(name: string | undefined, config: Config): Profile {
  const source = name === undefined ? undefined : config.profiles[name];
  if (!source || config.file === undefined) return { name, env: {}, files: [] };
  const folder = dirname(config.file);
  const text = (part: Text | undefined) =>
    typeof part === 'object' ? readText(resolve(folder, part.file)) : part;
  return {
    name,
    install: text(source.install),
    run: text(source.run),
    env: source.env ?? {},
    files: Object.entries(source.files ?? {}).map(([path, file]) => ({
      path,
      content: readBytes(resolve(folder, file), `profiles.${name}.files`, config.file),
    })),
  };
}

function readBytes(path: string, where: string, configFile: string | undefined): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new OffsiteError(`${configFile}: ${where}: cannot read ${path}: ${messageOf(error)}`, {
      code: 'FILE_UNREADABLE',
      kind: 'input',
      cause: error,
    });
  }
}
