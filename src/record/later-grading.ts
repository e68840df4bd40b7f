import type { Cause } from './cause.ts';
import type { CheckBeside } from './checks-beside.ts';
import type { TrialRecord } from './trial-record.ts';

/** A later grading of a trial, beside the first one. */
export interface LaterGrading {
  /** Epoch milliseconds. */
  gradedAt: number;
  verdict: TrialRecord['verdict'];
  /** The suite file that said how to grade; absent for the plan of the batch. */
  suite?: string | undefined;
  notes: string[];
  cause?: Pick<Cause, 'kind' | 'phase' | 'message'> | undefined;
  /** One line for each check that failed. */
  failures: string[];
  checks: CheckBeside[];
  /** The sha256 of the blob with its record. */
  record: string;
  /** Why the record cannot be read. */
  unreadable?: string | undefined;
}
