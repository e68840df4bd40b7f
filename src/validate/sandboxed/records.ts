/** What passes between Offsite and the validator's process in the sandbox. */

export interface SandboxedOrder {
  /** Begins every record's line. */
  nonce: string;
  /** Absolute path of the validator's module in the sandbox. */
  validator: string;
  workspace: string;
  variables: Record<string, string>;
  trajectory: unknown[];
}

export type SandboxedRecord =
  | { kind: 'broken'; message: string }
  | {
      kind: 'validation';
      name: string;
      startedAt: number;
      durationMs: number;
      passed: boolean;
      message?: string | undefined;
      output?: string | undefined;
      error?: string | undefined;
      logs: { at: number; level: string; text: string }[];
      /** Whether more was printed than `logs` keep. */
      logsCut: boolean;
    }
  | { kind: 'end' };
