import { bounds, cut } from './bounds.ts';
import type { Output } from './output.ts';

/** Characters of a line of a log above which its long texts are cut. */
const longLine = 16_384;

/** Where pino writes its lines of JSON, one an event. */
export function logDestination(output: Output): { write(line: string): void } {
  return { write: (line) => output.log(line.length > longLine ? shortened(line) : line.trimEnd()) };
}

/** A service's answer or a program's output may be in it. */
function shortened(line: string): string {
  return JSON.stringify(JSON.parse(line), (_, value: unknown) => {
    if (typeof value === 'string') return cut(value, bounds.line);
    return Array.isArray(value) ? value.slice(0, bounds.lines) : value;
  });
}
