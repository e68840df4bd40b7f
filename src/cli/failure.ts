import { allThrown, messageOf, OffsiteError } from '../base/offsite-error.ts';
import { BadFile } from '../suite/file-issues.ts';
import type { Output } from '../text/output.ts';
import { lines, text } from '../text/printable.ts';
import { exitCodes } from './exit-codes.ts';
import { Interrupted } from './interruption.ts';
import { Crashed } from './last-defence.ts';

/**
 * Prints what a command threw, for a person, and returns the exit code for the process: that of the error
 * which ended the command, not of those that followed while it cleaned up.
 */
export function printFailure(thrown: unknown, err: Pick<Output, 'print'>): number {
  const [first, ...later] = allThrown(thrown);
  const code = printFirst(first, err);
  const printed = new Set([first, messageOf(first)]);
  for (const error of later) {
    if (printed.has(error) || printed.has(messageOf(error))) continue;
    printed.add(messageOf(error));
    if (error instanceof OffsiteError) err.print(text`  and while ending: ${lines(error.message)}`);
    else printFirst(error, err);
  }
  return code;
}

function printFirst(error: unknown, err: Pick<Output, 'print'>): number {
  // Both were announced when they came.
  if (error instanceof Interrupted) return exitCodes.interrupted;
  if (error instanceof Crashed) return exitCodes.infrastructure;
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
    err.print('  Check that its disk works and has room. Everything stored before is safe.');
    return exitCodes.infrastructure;
  }
  err.print('error: unexpected error; this is a defect of Offsite.');
  err.print(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return exitCodes.infrastructure;
}
