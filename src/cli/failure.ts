import { OffsiteError } from '../offsite-error.ts';
import { BadFile } from '../suite/file-issues.ts';
import type { Output } from '../text/output.ts';
import { lines, text } from '../text/printable.ts';

/** The exit codes of every command. */
export const exitCodes = {
  done: 0,
  belowThreshold: 1,
  badInput: 2,
  infrastructure: 3,
  interrupted: 130,
} as const;

/** Prints a thrown error as a person needs it and says what the process should exit with. */
export function printFailure(error: unknown, err: Pick<Output, 'print'>): number {
  if (error instanceof BadFile) {
    // Each line is a place of its own, as editors and CI logs expect it.
    for (const issue of error.printed) err.print(issue);
    return exitCodes.badInput;
  }
  if (error instanceof OffsiteError) {
    err.print(text`error: ${lines(error.message)}`);
    if (error.hint) err.print(text`  ${lines(error.hint)}`);
    return error.kind === 'input' ? exitCodes.badInput : exitCodes.infrastructure;
  }
  if (error instanceof Error && (error as NodeJS.ErrnoException).code === 'ERR_SQLITE_ERROR') {
    err.print(text`error: a database of the data folder cannot be used: ${lines(error.message)}`);
    err.print('  Check that the disk is not full and works. What was stored before is safe.');
    return exitCodes.infrastructure;
  }
  err.print('error: Offsite met something it did not expect; this is a defect of Offsite.');
  err.print(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return exitCodes.infrastructure;
}
