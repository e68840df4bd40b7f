/**
 * The messages between Offsite and the validator's process in the sandbox: lines of JSON, to its stdin and
 * from its stdout.
 */

/** The first line of stdin. */
export interface SandboxedOrder {
  /** The beginning of each record's line. */
  nonce: string;
  /** Absolute path of the validator's module in the sandbox. */
  validator: string;
  workspace: string;
  variables: Record<string, string>;
  trajectory: unknown[];
  finalMessage: string | undefined;
  usage: Record<string, number>;
  filesChanged: string[];
  /** Whether the work is in another sandbox. Then Offsite also answers `read` and `files`. */
  apart: boolean;
}

/** Asks Offsite to run a program of the work, as another user or in another sandbox than this process. */
export interface SandboxedRun {
  kind: 'run';
  id: number;
  command: string;
  args: string[];
  options: { cwd?: string; env?: Record<string, string>; input?: string; timeout?: number };
}

/** Asks for files of a workspace in another sandbox. */
export type SandboxedLook = { kind: 'read'; id: number; path: string } | { kind: 'files'; id: number };

/** Asks Offsite to end all processes of the work. */
export interface SandboxedEndWork {
  kind: 'end-work';
  id: number;
}

/** A validation's request to a model. It goes through Offsite, because the sandbox has no network. */
export interface SandboxedAsk {
  kind: 'ask';
  id: number;
  validation: string;
  method: 'answer' | 'judge';
  request: unknown;
}

/** Every further line of stdin: the answer to the record with this id. */
export type SandboxedReply = { id: number; value: unknown } | { id: number; error: string };

export interface SandboxedValidation {
  kind: 'validation';
  name: string;
  startedAt: number;
  durationMs: number;
  /** `voided`: the validation has no verdict; `message` says why. */
  status: 'passed' | 'failed' | 'voided';
  message?: string | undefined;
  input?: SandboxedText | undefined;
  output?: SandboxedText | undefined;
  error?: string | undefined;
  metadata?: string | undefined;
  logs: { at: number; level: string; text: string }[];
  /** Whether the validation printed more than `logs` contains. */
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
  | SandboxedRun
  | SandboxedLook
  | SandboxedEndWork
  | SandboxedValidation
  | { kind: 'end' };
