import type { PlacedFile } from './environment.ts';

/**
 * Tests that grade a case in the agent's own sandbox, after the agent's end. Tasks in the formats of others
 * have them, in place of verify and validator.
 */
export interface CaseTests {
  /** Absolute paths. No agent sees them. */
  files: PlacedFile[];
  /** Absolute folders that hold nothing but `files` when the tests begin, whatever the agent left there. */
  emptied: string[];
  command: string[];
  env: Record<string, string>;
  /** Undefined for the sandbox's own. */
  user?: string | undefined;
  /** Milliseconds. */
  timeoutMs: number;
  /** How their outcome is read. */
  reading: TestReading;
  thresholds: Thresholds;
}

export type TestReading =
  /** Absolute paths of files that the tests write: an object of numbers in JSON, or one number. */
  | { kind: 'reward-files'; json: string; text: string }
  /** What the tests print. The share of those that passed is the reward `tests`. */
  | { kind: 'printed-tests'; parser: 'pytest' | 'swebench' };

/** What rewards must reach for a case to pass. */
export interface Thresholds {
  /** For each reward that has none of its own. */
  default: number;
  byName: Record<string, number>;
}

/** The thresholds that a file gives: one for all rewards, or those of some by name. Others need 1. */
export function thresholdsOf(threshold: number | Record<string, number> = 1): Thresholds {
  return typeof threshold === 'number'
    ? { default: threshold, byName: {} }
    : { default: 1, byName: threshold };
}

/** The author's own way to solve a case: a command, and the files that it needs. */
export interface CaseOracle {
  /** Absolute paths. No agent sees them. */
  files: PlacedFile[];
  command: string[];
  env: Record<string, string>;
}
