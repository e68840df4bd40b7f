import type { DatabaseSync } from 'node:sqlite';
import { claimLimits } from '../../contract/claim.ts';
import { inCode } from '../../ledger/records.ts';
import { keyOf, keysOfRun } from './trials.ts';

/** An agent's right to run a trial. */
export interface Lease {
  agent: string;
  /** From 1. Each new lease of a trial has a larger number. */
  attempt: number;
  /** Epoch milliseconds. The row stays after that. */
  expiresAt: number;
}

/** Milliseconds. */
const longest = claimLimits.seconds * 1000;

/**
 * Whether a lease holds. A lease that ends later than any that is granted now does not hold: the clock was
 * set back since it was granted, and its agent may be gone long before the clock reaches that time again.
 */
export function holds(expiresAt: number, now: number): boolean {
  return expiresAt > now && expiresAt <= now + longest;
}

/** The newest lease of each trial that was claimed and has not ended. */
export function createLeaseStore(database: DatabaseSync) {
  const select = database.prepare('SELECT agent, attempt, expires_at FROM leases WHERE trial = ?');
  const put = database.prepare(
    `INSERT INTO leases (trial, agent, attempt, expires_at) VALUES (?, ?, ?, ?)
     ON CONFLICT DO UPDATE
     SET agent = excluded.agent, attempt = excluded.attempt, expires_at = excluded.expires_at`,
  );
  const remove = database.prepare('DELETE FROM leases WHERE trial = ?');
  const selectHeld = database.prepare(
    `SELECT trial FROM leases WHERE trial BETWEEN ${keysOfRun('?1')} AND expires_at > ?2 AND expires_at <= ?3`,
  );

  return {
    read(run: number, ordinal: number): Lease | undefined {
      const row = select.get(keyOf(run, ordinal));
      return row && inCode<Lease>(row);
    },
    /** Stores a trial's newest lease. */
    put(run: number, ordinal: number, { agent, attempt, expiresAt }: Lease): void {
      put.run(keyOf(run, ordinal), agent, attempt, expiresAt);
    },
    /** Forgets the lease of a trial that has ended. */
    remove(run: number, ordinal: number): void {
      remove.run(keyOf(run, ordinal));
    },
    /** The ordinals of a run's trials whose lease has not expired. */
    held(run: number, now: number): Set<number> {
      return new Set(
        selectHeld.all(run, now, now + longest).map(({ trial }) => Number(trial) - keyOf(run, 0)),
      );
    },
  };
}
