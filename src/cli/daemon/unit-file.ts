import { lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder } from '../../base/byte-store.ts';
import { inputError, messageOf, type OffsiteError } from '../../base/offsite-error.ts';

/** What happened to a unit's file. */
export type UnitFileFate = 'written' | 'replaced' | 'unchanged' | 'removed' | 'absent';

/**
 * Writes a unit's file, completely or not at all. Throws `SERVICE_FILE_FOREIGN` if a file exists that we did
 * not write, unless `force` is set, and `SERVICE_FILE_UNUSABLE` if it cannot be written.
 */
export function writeUnit({ file, text }: ServiceUnit, { force }: { force: boolean }): UnitFileFate {
  const before = contentOf(file);
  if (before === text) return 'unchanged';
  requireOurs(file, before, force);
  const partial = `${file}.${process.pid}.partial`;
  try {
    makeFolder(dirname(file));
    // Everybody may read it, like every unit. The keys are in the environment file.
    writeFileSync(partial, text, { mode: 0o644, flag: 'wx' });
    renameSync(partial, file);
  } catch (error) {
    rmSync(partial, { force: true });
    throw unusable('write', file, error);
  }
  return before === undefined ? 'written' : 'replaced';
}

/**
 * Removes a unit's file. Throws `SERVICE_ENABLED` while its manager starts it automatically and
 * `SERVICE_FILE_FOREIGN` if we did not write it, both unless `force` is set, and `SERVICE_FILE_UNUSABLE` if
 * it cannot be removed.
 */
export function removeUnit(unit: ServiceUnit, { force }: { force: boolean }): UnitFileFate {
  const { file, name, enabledBy, stop } = unit;
  const before = contentOf(file);
  if (before === undefined) return 'absent';
  requireOurs(file, before, force);
  if (!force && enabledBy !== undefined && lstatSync(enabledBy, { throwIfNoEntry: false })) {
    throw inputError('SERVICE_ENABLED', `${name} is still enabled`, {
      hint: `Stop it first, which loses nothing: ${stop.join('; ')}. --force removes the file anyway.`,
    });
  }
  try {
    rmSync(file);
  } catch (error) {
    throw unusable('remove', file, error);
  }
  return 'removed';
}

function contentOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw unusable('read', file, error);
  }
}

function requireOurs(file: string, content: string | undefined, force: boolean): void {
  if (force || content === undefined || content.includes(mark)) return;
  throw inputError('SERVICE_FILE_FOREIGN', `Offsite did not write ${file}`, {
    hint: 'Move the file away, or replace or remove it with --force.',
  });
}

function unusable(what: string, file: string, error: unknown): OffsiteError {
  return inputError('SERVICE_FILE_UNUSABLE', `cannot ${what} ${file}: ${messageOf(error)}`, {
    hint: 'Run the command as root, or with --user for a service of your own user.',
    cause: error,
  });
}

/** What a service manager must start, and for whom. All paths are absolute. */
export interface ServiceSpec {
  /** For the whole machine, or for one user while that user is logged in. */
  scope: 'system' | 'user';
  /** The program and the arguments that run the daemon. */
  command: readonly string[];
  dataFolder: string;
  /** Holds what must not be on a command line, such as keys: lines of `NAME=value`. It need not exist. */
  environmentFile: string;
  /** The user that a system service runs as; undefined is root. */
  runAs: string | undefined;
}

/** A service in the form that its manager reads. */
export interface ServiceUnit {
  /** The manager's name for the service. */
  name: string;
  file: string;
  text: string;
  /**
   * A link that exists while the manager starts the service automatically; undefined if the manager makes
   * none.
   */
  enabledBy: string | undefined;
  /** Commands that make the manager start the service, and show its state. */
  start: readonly string[];
  /** Commands that stop the service for good, before its file is removed. */
  stop: readonly string[];
  /** Commands that make the manager forget the service, after its file is removed. */
  forget: readonly string[];
}

/** Marks a file that we may replace or remove. */
export const mark = 'Written by `offsite daemon install`.';
