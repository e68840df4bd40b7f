import type { Readable } from 'node:stream';
import type { CapturedOutput } from '../../base/output-capture.ts';
import type { OutputStream } from '../port/containers.ts';

export interface ExecRequest {
  argv: readonly string[];
  /** Added to the container's own; names given here win. */
  env?: Readonly<Record<string, string>>;
  /** Absolute; default: the container's working folder. */
  cwd?: string;
  user?: string;
  /**
   * The process reads this and then end-of-file. A stream is passed on as it arrives, and destroyed when the
   * process ends.
   */
  stdin?: Buffer | string | Readable;
  /** Milliseconds from now until the process and all its children are killed. */
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  /**
   * Bytes that the container may have written in total before the command is ended; default: the container's
   * `diskBytes`.
   */
  diskBytes?: number | undefined;
  /**
   * Whether the command belongs to an agent: if the container ends by itself meanwhile, the command counts as
   * killed. Otherwise that is `ENGINE_CONTAINER_DAMAGED`, since it says nothing about the command.
   */
  mayEndContainer?: boolean;
  /** Bytes kept of each stream, half from its beginning and half from its end. Default 1 MiB. */
  capBytes?: number;
  /** Receives every byte, kept or not, as it arrives. The buffer is reused: copy what you keep. */
  onOutput?(stream: OutputStream, bytes: Buffer): void;
}

export interface ExecFacts {
  stdout: CapturedOutput;
  stderr: CapturedOutput;
  /** Epoch milliseconds of this machine. Their difference is true even if its clock was set meanwhile. */
  startedAt: number;
  finishedAt: number;
  /** Whether the kernel killed a process of the container for memory while this ran. */
  oomKilled: boolean;
}

/** How a command ended. There is an exit code unless Offsite ended it, and 137 if its container ended. */
export type ExecResult = ExecFacts &
  (
    | { ended: 'exited'; exitCode: number }
    /** `out-of-disk`: ended for writing more than the container's `diskBytes`. */
    | { ended: 'timed-out' | 'canceled' | 'out-of-disk'; exitCode?: undefined }
    /** The engine could not start it: no such program, folder or user. */
    | { ended: 'not-started'; exitCode?: undefined; message: string }
  );

/** Whether a command ran to its end, with exit code 0. */
export function isSuccess(result: ExecResult): boolean {
  return result.ended === 'exited' && result.exitCode === 0;
}

/** How a command ended, in words that follow what it is. */
export function howItEnded(result: ExecResult, timeoutMs: number): string {
  switch (result.ended) {
    case 'exited':
      return `exited with ${result.exitCode}`;
    case 'timed-out':
      return `was stopped after ${timeoutMs / 1000} s`;
    case 'canceled':
      return 'was canceled';
    case 'out-of-disk':
      return 'was stopped because it wrote more than the sandbox allows';
    case 'not-started':
      return `could not be started: ${result.message}`;
  }
}

/** What a command printed, or why it was not started. */
export function printedBy(result: ExecResult, stream: 'stdout' | 'stderr' = 'stdout'): string {
  return result.ended === 'not-started' ? result.message : result[stream].text;
}
