import { Output } from '../text/output.ts';
import type { Redact } from '../text/printable.ts';

/** Where a command prints: its result on `out`, all that it says meanwhile on `err`. */
export interface Terminal {
  out: Output;
  err: Output;
}

/** This process's own. @param redact takes known secrets out */
export function openTerminal(redact?: Redact): Terminal {
  return { out: new Output(process.stdout, redact), err: new Output(process.stderr, redact) };
}
