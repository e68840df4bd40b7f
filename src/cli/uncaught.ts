import type { Output } from '../text/output.ts';
import { lines, text } from '../text/printable.ts';
import { printFailure } from './failure.ts';

/**
 * Prints warnings of libraries and uncaught errors through our own output, which makes their text safe for a
 * terminal. Node would print them unchanged.
 */
export function printUncaught(err: Output): void {
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => err.print(text`${name}: ${lines(message)}`));
  process.on('uncaughtException', (error) => process.exit(printFailure(error, err)));
}
