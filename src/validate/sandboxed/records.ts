/** What passes between Offsite and the validator's process in the sandbox: lines of JSON, to its stdin and from its stdout. */

/** The first line of stdin. */
export interface SandboxedOrder {
  /** Begins every record's line. */
  nonce: string;
  /** Absolute path of the validator's module in the sandbox. */
  validator: string;
  workspace: string;
  variables: Record<string, string>;
  trajectory: unknown[];
  finalMessage: string | undefined;
  usage: Record<string, number>;
  filesChanged: string[];
  /** The user and group id that `run` gives to programs, and that the workspace is given to; itself where left out. */
  runAs: number | undefined;
}

/** What a validation asks a model for, by way of Offsite: there is no network in the sandbox. */
export interface SandboxedAsk {
  kind: 'ask';
  id: number;
  validation: string;
  method: 'answer' | 'judge';
  request: unknown;
}

/** Every further line of stdin: what became of an ask. */
export type SandboxedReply = { id: number; value: unknown } | { id: number; error: string };

export interface SandboxedValidation {
  kind: 'validation';
  name: string;
  startedAt: number;
  durationMs: number;
  /** `voided`: it came to no verdict, for `message`. */
  status: 'passed' | 'failed' | 'voided';
  message?: string | undefined;
  input?: SandboxedText | undefined;
  output?: SandboxedText | undefined;
  error?: string | undefined;
  metadata?: string | undefined;
  logs: { at: number; level: string; text: string }[];
  /** Whether more was printed than `logs` keep. */
  logsCut: boolean;
}

export interface SandboxedText {
  text: string;
  format: 'text' | 'json';
}

export type SandboxedRecord =
  | { kind: 'broken'; message: string }
  | { kind: 'begin'; name: string }
  | SandboxedAsk
  | SandboxedValidation
  | { kind: 'end' };
