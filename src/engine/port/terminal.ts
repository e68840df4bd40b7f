import type { Duplex } from 'node:stream';
import type { ExecState } from './exec.ts';

/** In cells. */
export interface TerminalSize {
  columns: number;
  rows: number;
}

/** A command for a person, on a terminal of its own. */
export interface TerminalCommand {
  argv: readonly string[];
  /** Sent in the request's body, never in argv or a URL. */
  env?: Readonly<Record<string, string>>;
  cwd?: string | undefined;
  user?: string | undefined;
  size: TerminalSize;
  signal?: AbortSignal | undefined;
}

/** A command running on a terminal in a container. Disposing closes the stream. */
export interface OpenTerminal extends Disposable {
  /**
   * The raw bytes of the terminal: keys are written to it, and output for the screen is read from it. Ends
   * when the engine ends the stream, which says nothing about success.
   */
  readonly stream: Duplex;
  /** Notifies the command that its terminal has another size. Does nothing once the command has ended. */
  resize(size: TerminalSize): Promise<void>;
  inspect(): Promise<ExecState>;
}

/** `started: false`: the engine answered the start with "cannot run this". */
export type OpenedTerminal = { started: true; terminal: OpenTerminal } | { started: false; message: string };
