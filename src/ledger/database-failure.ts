import { infrastructureError, OffsiteError } from '../base/offsite-error.ts';

/**
 * SQLite's result codes (sqlite.org/rescode.html). Extended codes carry the primary code in their low byte.
 */
const results = {
  busy: 5,
  readOnly: 8,
  inputOutput: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notDatabase: 26,
};

const damagedHint =
  'Use the newest backup (of `offsite data backup`, or FILE.before-vN), or name another data folder. ' +
  'The results stay in the folder `blobs`.';

/**
 * What an SQLite error means to a user. Returns errors that are bugs in Offsite, such as a broken constraint,
 * unchanged.
 *
 * @param file the database's file, for the message
 */
export function databaseFailure(file: string, thrown: unknown): unknown {
  if (thrown instanceof OffsiteError || !(thrown instanceof Error)) return thrown;
  const { code, errcode } = thrown as { code?: unknown; errcode?: unknown };
  if (code !== 'ERR_SQLITE_ERROR' || typeof errcode !== 'number') return thrown;
  const failure = (code: string, message: string, hint: string) =>
    infrastructureError(code, `${message} (${thrown.message})`, { hint, cause: thrown });
  switch (errcode & 0xff) {
    case results.full:
      return failure(
        'DISK_FULL',
        `the disk of ${file} is full`,
        'Free some space, then run `offsite resume`. Everything stored before is safe.',
      );
    case results.corrupt:
    case results.notDatabase:
      return damagedDatabase(file, thrown.message, thrown);
    case results.busy:
      return failure(
        'DATABASE_BUSY',
        `another process has kept ${file} locked for too long`,
        'Check which other Offsite process uses this data folder, and whether it is stuck.',
      );
    case results.readOnly:
    case results.inputOutput:
    case results.cannotOpen:
      return failure(
        'DATABASE_UNUSABLE',
        `${file} cannot be used`,
        'Check that its disk works and has room, that you can write to the folder, and how many files may be ' +
          'open (ulimit -n): SQLite does not say which of these it was.',
      );
    default:
      return thrown;
  }
}

export function damagedDatabase(file: string, finding: string, cause?: unknown): OffsiteError {
  return infrastructureError('DATABASE_DAMAGED', `${file} is damaged: ${finding}`, {
    hint: damagedHint,
    cause,
  });
}
