import { printedText } from '../bounds/anyone.ts';
import { cut } from './cut.ts';
import type { Output } from './output.ts';

/** The destination for pino's lines of JSON, one per event. */
export function logDestination(output: Output): { write(line: string): void } {
  return {
    write: (line) => output.log(line.length > printedText.bytes.logLine ? shortened(line) : line.trimEnd()),
  };
}

/** The line may contain a service's answer or a program's output. */
function shortened(line: string): string {
  return JSON.stringify(JSON.parse(line), (_, value: unknown) => {
    if (typeof value === 'string') return cut(value, printedText.bytes.line);
    return Array.isArray(value) ? value.slice(0, printedText.count.lines) : value;
  });
}
