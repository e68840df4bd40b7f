import type { Cause } from './cause.ts';

/** An attempt at a trial, as the ledger keeps it. Times are epoch milliseconds. */
export interface Attempt {
  /** The ledger's key. */
  key: number;
  /** The ledger's key of the trial. */
  trial: number;
  /** From 1. */
  number: number;
  startedAt: number;
  /** Undefined while it runs. */
  endedAt: number | undefined;
  /** A verdict, or why it did not give the trial its result; undefined while it runs. */
  ending: string | undefined;
  /** Why it has no verdict. */
  cause: Cause | undefined;
  /** The sha256 of the blob with what an attempt that does not count had found. */
  result: string | undefined;
}

/** An attempt that has begun and has not ended. */
export type BegunAttempt = Pick<Attempt, 'key' | 'trial' | 'number'>;

/** An attempt in the list of its trial's attempts. */
export type ListedAttempt = Omit<Attempt, 'key' | 'trial'>;
