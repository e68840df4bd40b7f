import { Output } from '../text/output.ts';
import { type Redact, showsUtf8 } from '../text/printable.ts';

/** Where a command prints: its result on `out`, everything else on `err`. */
export interface Terminal {
  out: Output;
  err: Output;
}

/**
 * The terminal of this process.
 *
 * @param redact removes known secrets
 */
export function openTerminal(redact?: Redact): Terminal {
  const isUtf8 = showsUtf8(process.env);
  return {
    out: new Output(process.stdout, redact, { isUtf8 }),
    err: new Output(process.stderr, redact, { isUtf8 }),
  };
}

/** The terminal at which a person sits, for a program in a sandbox that draws on it. */
export interface PersonsTerminal {
  keys: NodeJS.ReadStream;
  screen: NodeJS.WriteStream;
  /** As in `TERM`. */
  type: string;
}

/** Undefined unless both standard input and standard output are a terminal. */
export function personsTerminal(): PersonsTerminal | undefined {
  const { stdin: keys, stdout: screen, env } = process;
  return keys.isTTY && screen.isTTY ? { keys, screen, type: env.TERM ?? 'xterm' } : undefined;
}
