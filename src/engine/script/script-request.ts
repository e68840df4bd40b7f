import type { Clock } from '../../base/clock.ts';

export interface ScriptRequest {
  /** Bash. Every command, on however many lines, becomes a step; comments and blank lines do not. */
  script: string;
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  user?: string;
  /** Milliseconds for the whole script. */
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  /** As for a single command; see exec-request.ts. */
  mayEndContainer?: boolean;
  /** Bytes of output kept of each step, half from its beginning and half from its end. Default 1 MiB. */
  capBytes?: number;
  /** The clock of the steps' times. Default: that of the engine's client. */
  clock?: Clock | undefined;
  /**
   * Prevents the script's programs from reading or changing the shells that report its steps. See
   * `own-files/shield.c`; not on machines that it is not compiled for.
   */
  shield?: boolean;
}

interface StepFacts {
  /** The step's source text in the script. */
  command: string;
  /** Epoch milliseconds by the request's clock. Their difference is measured in the container. */
  startedAtMillis: number;
  finishedAtMillis: number;
  /** stdout and stderr in the order they were written. A line in it says what was cut. */
  output: string;
  outputTruncated: boolean;
  /** Bytes written, kept or not. */
  outputBytes: number;
}

export type ScriptStep = StepFacts &
  /** `unreadable`: bash cannot read the command, and nothing of it ran. Its exit code is 2. */
  (
    | { ended: 'exited'; exitCode: number; unreadable?: true }
    /** `lost`: the next command began, or the script ended, without a mark for the end of this one. */
    | { ended: 'timed-out' | 'canceled' | 'out-of-disk' | 'lost'; exitCode?: undefined }
  );

/**
 * `finished`: the script ran to its end or left by itself, whatever its exit codes. Otherwise `steps` holds
 * what ran until then, and the last step has the same `ended`.
 */
export type ScriptResult = {
  steps: ScriptStep[];
  oomKilled: boolean;
} & (
  | {
      ended: 'finished';
      /** Whether `/dev/null` and similar files were still devices after the script; false if unknown. */
      devicesIntact: boolean;
      /** Whether the script's programs could not read the shells that report the steps. */
      shielded: boolean;
    }
  | { ended: 'timed-out' | 'canceled' | 'out-of-disk' }
  | { ended: 'not-started'; message: string }
);
