import { printedText } from '../bounds/anybody.ts';
import { cut } from './cut.ts';
import type { Output } from './output.ts';

/** Where pino writes its lines of JSON, one an event. */
export function logDestination(output: Output): { write(line: string): void } {
  return {
    write: (line) => output.log(line.length > printedText.bytes.logLine ? shortened(line) : line.trimEnd()),
  };
}

/** A service's answer or a program's output may be in it. */
function shortened(line: string): string {
  return JSON.stringify(JSON.parse(line), (_, value: unknown) => {
    if (typeof value === 'string') return cut(value, printedText.bytes.line);
    return Array.isArray(value) ? value.slice(0, printedText.count.lines) : value;
  });
}
