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

/** The exit code for results: something could not be judged or reported, or too little passed. */
export function exitCodeOfRates(
  summary: { void: number; unreported: number; passRate: number | undefined },
  failUnder: number | undefined,
): number {
  if (summary.void > 0 || summary.unreported > 0) return exitCodes.infrastructure;
  const isBelow = failUnder !== undefined && (summary.passRate ?? 0) < failUnder;
  return isBelow ? exitCodes.belowThreshold : exitCodes.done;
}

/** Prints a thrown error for a person, and returns the exit code for the process. */
export function printFailure(error: unknown, err: Pick<Output, 'print'>): number {
  if (error instanceof BadFile) {
    // Each line names a file and a position, as editors and CI logs expect.
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
    err.print('  Check that the disk works and is not full. Everything stored before is safe.');
    return exitCodes.infrastructure;
  }
  err.print('error: unexpected error; this is a defect of Offsite.');
  err.print(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return exitCodes.infrastructure;
}
