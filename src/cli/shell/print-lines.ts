import { StringDecoder } from 'node:string_decoder';
import { commandOutput } from '../../bounds/sandbox.ts';
import type { Output } from '../../text/output.ts';

export interface LinePrinter extends Disposable {
  add(bytes: Buffer): void;
}

/** Prints what a program writes line by line, as it comes. Disposing prints the rest. */
export function linePrinter(output: Output): LinePrinter {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  return {
    add(bytes) {
      const lines = `${rest}${decoder.write(bytes)}`.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) output.print(line.replace(/\r$/, ''));
      if (rest.length > commandOutput.bytes.unendedLine) {
        output.print(rest);
        rest = '';
      }
    },
    [Symbol.dispose]() {
      rest += decoder.end();
      if (rest !== '') output.print(rest);
      rest = '';
    },
  };
}
