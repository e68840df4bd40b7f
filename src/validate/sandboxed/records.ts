/**
 * What passes between Offsite and the validator's process in the sandbox: lines of JSON, to its stdin and
 * from its stdout.
 */

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
  /** Whether the work is in another sandbox, so that `read` and `files` are for Offsite too. */
  apart: boolean;
}

/** A program of the work that Offsite is to run, as another user or in another sandbox than this process. */
export interface SandboxedRun {
  kind: 'run';
  id: number;
  command: string;
  args: string[];
  options: { cwd?: string; env?: Record<string, string>; input?: string; timeout?: number };
}

/** What is asked of a workspace in another sandbox. */
export type SandboxedLook = { kind: 'read'; id: number; path: string } | { kind: 'files'; id: number };

/** Asks for the end of all that the work has running. */
export interface SandboxedStill {
  kind: 'still';
  id: number;
}

/** What a validation asks a model for, by way of Offsite: there is no network in the sandbox. */
export interface SandboxedAsk {
  kind: 'ask';
  id: number;
  validation: string;
  method: 'answer' | 'judge';
  request: unknown;
}

/** Every further line of stdin: what became of an ask, or of whatever else has an id. */
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
  | SandboxedRun
  | SandboxedLook
  | SandboxedStill
  | SandboxedValidation
  | { kind: 'end' };
