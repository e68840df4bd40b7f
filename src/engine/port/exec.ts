import type { Duplex, Readable } from 'node:stream';

export type OutputStream = 'stdout' | 'stderr';

/** Part of what a process wrote, in order. The buffer is reused: copy what you keep. */
export interface OutputPiece {
  stream: OutputStream;
  bytes: Buffer;
}

export interface ExecCommand {
  argv: readonly string[];
  /** Sent in the request's body, never in argv or a URL. */
  env?: Readonly<Record<string, string>>;
  cwd?: string | undefined;
  user?: string | undefined;
  /** Sent to the process and closed. Without it the process reads end-of-file at once. */
  stdin?: Buffer | string | Readable | undefined;
  /** Whether it reads all its input before it ends, unless it is killed. Default: nobody knows. */
  readsInput?: boolean;
  onPiece(piece: OutputPiece): void;
  signal?: AbortSignal | undefined;
}

export interface ExecState {
  running: boolean;
  exitCode: number | null;
  /**
   * Whether the engine could not start it. Some engines report that only here, and the reason as output of
   * the command.
   */
  neverStarted: boolean;
}

/**
 * A command running in a container, and the attached stream of what it prints. Disposing closes the stream.
 */
export interface OpenExec extends Disposable {
  /** As the engine knows it. */
  readonly id: string;
  /** Resolves when the engine ended the stream; rejects when it broke. Says nothing about success. */
  readonly streamEnded: Promise<void>;
  inspect(): Promise<ExecState>;
}

/** `started: false`: the engine answered the start with "cannot run this". */
export type OpenedExec = { started: true; exec: OpenExec } | { started: false; message: string };

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
