import type { Output } from '../text/output.ts';
import { lines, text } from '../text/printable.ts';
import { printFailure } from './failure.ts';

/**
 * Node prints warnings of libraries, and errors that nobody caught, with whatever text they carry. Here they
 * go the way of all that is printed.
 */
export function catchTheRest(err: Output): void {
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => err.print(text`${name}: ${lines(message)}`));
  process.on('uncaughtException', (error) => process.exit(printFailure(error, err)));
}
