export interface ScriptRequest {
  /** Bash. Every command, on however many lines, becomes a step; comments and blank lines do not. */
  script: string;
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  user?: string;
  /** Milliseconds for the whole script. */
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  /**
   * Bytes that the container may have written, before or now, until the script is ended; the container's own
   * `diskBytes` when left out.
   */
  diskBytes?: number | undefined;
  /** Bytes of output kept of each step, half its beginning, half its end. Default 1 MiB. */
  capBytes?: number;
  /**
   * Keep what the script runs from reading and rewriting the shells that tell of its steps. One round trip
   * more.
   */
  shield?: boolean;
}

interface StepFacts {
  /** The step's source, as it stands in the script. */
  command: string;
  /** Epoch milliseconds by the container's clock, which is the engine host's. */
  startedAtMillis: number;
  finishedAtMillis: number;
  /** stdout and stderr in the order they were written. A line in it says what was cut. */
  output: string;
  outputTruncated: boolean;
  /** Bytes written, kept or not. */
  outputBytes: number;
}

export type ScriptStep = StepFacts &
  (
    | { ended: 'exited'; exitCode: number }
    /** `lost`: the next command began, or the script ended, without a word on how this one ended. */
    | { ended: 'timed-out' | 'canceled' | 'out-of-disk' | 'lost'; exitCode?: undefined }
  );

/**
 * `finished`: the script ran to its end or left by itself, whatever its exit codes. In the other cases
 * `steps` holds what ran until then, its last one marked with the same word.
 */
export type ScriptResult = {
  steps: ScriptStep[];
  /** Epoch milliseconds of this machine. */
  startedAt: number;
  finishedAt: number;
  oomKilled: boolean;
} & (
  | {
      ended: 'finished';
      /**
       * Whether `/dev/null` and its like were devices when the script had ended; false where it was not said.
       */
      devicesIntact: boolean;
      /** Whether the shells that told of the steps could not be read by what they ran. */
      shielded: boolean;
    }
  | { ended: 'timed-out' | 'canceled' | 'out-of-disk' }
  | { ended: 'not-started'; message: string }
);
