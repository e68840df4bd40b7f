import { lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import { mark, type ServiceUnit } from './service-unit.ts';

/** What became of a unit's file. */
export type UnitFileFate = 'written' | 'replaced' | 'unchanged' | 'removed' | 'absent';

/**
 * Writes a unit's file, whole or not at all. Throws `SERVICE_FILE_FOREIGN` where one is there that we did not
 * write, unless `force` is set, and `SERVICE_FILE_UNUSABLE` where it cannot be written.
 */
export function writeUnit({ file, text }: ServiceUnit, { force }: { force: boolean }): UnitFileFate {
  const before = contentOf(file);
  if (before === text) return 'unchanged';
  requireOurs(file, before, force);
  const partial = `${file}.${process.pid}.partial`;
  try {
    mkdirSync(dirname(file), { recursive: true });
    // Everybody may read it, as every unit: keys are in the environment file.
    writeFileSync(partial, text, { mode: 0o644, flag: 'wx' });
    renameSync(partial, file);
  } catch (error) {
    rmSync(partial, { force: true });
    throw unusable('write', file, error);
  }
  return before === undefined ? 'written' : 'replaced';
}

/**
 * Removes a unit's file. Throws `SERVICE_ENABLED` while its manager still starts it by itself and
 * `SERVICE_FILE_FOREIGN` where we did not write it, both unless `force` is set, and `SERVICE_FILE_UNUSABLE`
 * where it cannot be removed.
 */
export function removeUnit(unit: ServiceUnit, { force }: { force: boolean }): UnitFileFate {
  const { file, name, enabledBy, stop } = unit;
  const before = contentOf(file);
  if (before === undefined) return 'absent';
  requireOurs(file, before, force);
  if (!force && enabledBy !== undefined && lstatSync(enabledBy, { throwIfNoEntry: false })) {
    throw new OffsiteError(`${name} is still enabled`, {
      code: 'SERVICE_ENABLED',
      kind: 'input',
      hint: `Stop it first, and nothing is lost: ${stop.join('; ')}. --force removes its file nonetheless.`,
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
  throw new OffsiteError(`${file} was not written by Offsite`, {
    code: 'SERVICE_FILE_FOREIGN',
    kind: 'input',
    hint: 'Look at it, and move it away; or add --force, and it is gone.',
  });
}

function unusable(what: string, file: string, error: unknown): OffsiteError {
  return new OffsiteError(`cannot ${what} ${file}: ${messageOf(error)}`, {
    code: 'SERVICE_FILE_UNUSABLE',
    kind: 'input',
    hint: 'Run the command as root; or with --user, for a service of your own.',
    cause: error,
  });
}
