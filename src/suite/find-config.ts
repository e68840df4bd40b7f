import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { inputError } from '../base/offsite-error.ts';

export interface ConfigSearch {
  /** The file that the user named. */
  named?: string | undefined;
  /** The folder of the suite, if a command reads one. */
  suiteFolder?: string | undefined;
  env: NodeJS.ProcessEnv;
}

/**
 * The configuration file that a command reads, if there is one: the named one, or the first that exists
 * beside the suite or above it in its git repository, in the working folder, or in the user's config folder.
 * Throws an `input` error if a named file does not exist.
 */
export function findConfig(options: ConfigSearch): string | undefined {
  const { env } = options;
  const named = options.named ?? env.OFFSITE_CONFIG;
  if (named !== undefined && !existsSync(named)) {
    throw inputError('CONFIG_MISSING', `the configuration file ${named} does not exist`, {
      hint: 'The path comes from --config or OFFSITE_CONFIG. Correct it or remove it.',
    });
  }
  return named ?? firstIn(configFolders(options));
}

/** The configuration beside a suite's file, or above it in its git repository. */
export function configBeside(suite: string): string | undefined {
  return firstIn(upwards(dirname(suite)));
}

function firstIn(folders: readonly string[]): string | undefined {
  return folders.map((folder) => join(folder, 'offsite.yaml')).find((path) => existsSync(path));
}

/** The folders in which a configuration that nobody named is looked for, in this order. */
export function configFolders({ suiteFolder, env }: ConfigSearch): string[] {
  const userFolder = env.XDG_CONFIG_HOME || join(homedir(), '.config');
  return [...(suiteFolder === undefined ? [] : upwards(suiteFolder)), '.', join(userFolder, 'offsite')];
}

/** A folder, and if it is in a git repository, those above it that are too. */
function upwards(folder: string): string[] {
  const root = repositoryAbove(folder);
  const above = [folder];
  for (let at = resolve(folder); root !== undefined && at !== root; at = dirname(at)) above.push(dirname(at));
  return above;
}

/** The folder of the git repository that a folder is in. */
export function repositoryAbove(folder: string): string | undefined {
  for (let at = resolve(folder); ; at = dirname(at)) {
    if (existsSync(join(at, '.git'))) return at;
    if (at === dirname(at)) return undefined;
  }
}
