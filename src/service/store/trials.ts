import { claimLimits } from '../../contract/operations.ts';
import type { Costs } from '../../contract/record.ts';
import type { Records } from '../../ledger/records.ts';
import { pieceSizes } from '../json-response.ts';
import type { EndedTrial } from '../record/costs.ts';
import { jsonIn } from './runs.ts';

/** The JSON texts of an ended trial: as run records carry it, and what its report said besides. */
export interface TrialTexts {
  record: string;
  leftovers: string;
}

/** What a trial of the platform has in addition to a reported one. */
export interface CompletedFacts {
  harnessVersion: string | undefined;
  profileVersion: string | undefined;
  costs: Costs | undefined;
}

/** An agent's right to run a trial. */
export interface Lease {
  agent: string;
  /** From 1. Each new lease of a trial has a larger number. */
  attempt: number;
  /** Epoch milliseconds. The row stays after that. */
  expiresAt: number;
}

/** How far the evidence of a reported trial holds. */
export interface AuditMark {
  level: string;
  /** Epoch milliseconds. */
  auditedAt: number;
}

/** The trials of a run are next to one another in each table. SQL for the range of their possible keys. */
export const keysOfRun = (run: string) => `${run} * 16 AND ${run} * 16 + 15`;
const keyOf = (run: number, ordinal: number) => run * 16 + ordinal;

/** Milliseconds. */
const longestLease = claimLimits.seconds * 1000;

/**
 * Whether a lease holds. A lease that ends later than any that is granted now does not hold: the clock was
 * set back since it was granted, and its agent may be gone long before the clock reaches that time again.
 */
export function holds(expiresAt: number, now: number): boolean {
  return expiresAt > now && expiresAt <= now + longestLease;
}

/** What is known of the trials of runs. A trial has a row among them once it has ended. */
export function createTrialStore(records: Records) {
  /** What a table has of the trials of a run, by ordinal. */
  const ofRun = <Found>(run: number, table: string, columns: string, key = 'key'): Map<number, Found> => {
    const query = `SELECT ${key} AS key, ${columns} FROM ${table} WHERE ${key} BETWEEN ${keysOfRun('?1')} ORDER BY ${key}`;
    const rows = records.select<Found & { key: number }>(query, run);
    return new Map(rows.map(({ key, ...found }) => [key - keyOf(run, 0), found as Found]));
  };

  return {
    /** Undefined if the trial has not ended. */
    read: (run: number, ordinal: number) =>
      records.select<TrialTexts>(
        'SELECT record, leftovers FROM trials WHERE key = ?',
        keyOf(run, ordinal),
      )[0],
    add(run: number, ordinal: number, summary: EndedTrial, { record, leftovers }: TrialTexts): void {
      records.insert('trials', { key: keyOf(run, ordinal), ...summary, leftovers, record });
    },
    /** Cheap, because it does not read the trials' JSON. */
    summaries: (run: number) => ofRun<EndedTrial>(run, 'trials', 'verdict, commands, cost_usd, ended_at'),
    /**
     * JSON of one trial, as bytes, because decoding a long text takes four times as long as reading it. In
     * slices, so that a slow reader holds only one in memory. No slices if the trial has not ended.
     */
    *record(run: number, ordinal: number): Generator<Uint8Array> {
      const key = keyOf(run, ordinal);
      const found = records.get('SELECT octet_length(record) AS size FROM trials WHERE key = ?', key);
      const query = 'SELECT substr(CAST(record AS BLOB), ?, ?) AS slice FROM trials WHERE key = ?';
      for (let at = 0; at < Number(found?.size ?? 0); at += pieceSizes.record)
        yield records.get(query, at + 1, pieceSizes.record, key)?.slice as Uint8Array;
    },
    /** Adds what a trial of the platform has besides its row, which must be there. */
    complete(run: number, ordinal: number, facts: CompletedFacts): void {
      const { harnessVersion, profileVersion, costs } = facts;
      const text = (value: unknown) => (value === undefined ? undefined : JSON.stringify(value));
      records.insert('completed_trials', {
        key: keyOf(run, ordinal),
        harnessVersion: text(harnessVersion),
        profileVersion: text(profileVersion),
        costs: text(costs),
      });
    },
    facts(run: number): CompletedFacts[] {
      const found = ofRun<CompletedFacts>(run, 'completed_trials', 'harness_version, profile_version, costs');
      return [...found.values()].map(({ harnessVersion, profileVersion, costs }) => ({
        harnessVersion: jsonIn(harnessVersion),
        profileVersion: jsonIn(profileVersion),
        costs: jsonIn(costs),
      }));
    },
    /** The marks of trials whose evidence was audited here. */
    marks: (run: number) => ofRun<AuditMark>(run, 'audited_trials', 'level, audited_at'),
    /** A trial keeps the highest level that it had: an audit that went less far takes nothing back. */
    mark(run: number, ordinal: number, { level, auditedAt }: AuditMark): void {
      const query = `INSERT INTO audited_trials (key, level, audited_at) VALUES (?, ?, ?)
        ON CONFLICT DO UPDATE SET level = excluded.level, audited_at = excluded.audited_at
        WHERE level != 'regraded' OR excluded.level = 'regraded'`;
      records.run(query, keyOf(run, ordinal), level, auditedAt);
      if (level !== 'regraded') return;
      const counts = `UPDATE runs SET suite_id =
          (SELECT json_extract(suite_name, '$.id') FROM batches WHERE batches.key = runs.batch)
        WHERE key = ? AND suite_id IS NULL`;
      records.run(counts, run);
    },
    /** The newest lease of a trial that was claimed and has not ended. */
    lease: (run: number, ordinal: number): Lease | undefined =>
      records.select<Lease>(
        'SELECT agent, attempt, expires_at FROM leases WHERE trial = ?',
        keyOf(run, ordinal),
      )[0],
    putLease(run: number, ordinal: number, { agent, attempt, expiresAt }: Lease): void {
      const query = `INSERT INTO leases (trial, agent, attempt, expires_at) VALUES (?, ?, ?, ?)
        ON CONFLICT DO UPDATE
        SET agent = excluded.agent, attempt = excluded.attempt, expires_at = excluded.expires_at`;
      records.run(query, keyOf(run, ordinal), agent, attempt, expiresAt);
    },
    /** Forgets the lease of a trial that has ended. */
    removeLease(run: number, ordinal: number): void {
      records.run('DELETE FROM leases WHERE trial = ?', keyOf(run, ordinal));
    },
    /** The ordinals of a run's trials whose lease holds. */
    claimed(run: number, now: number): Set<number> {
      const leases = ofRun<Lease>(run, 'leases', 'expires_at', 'trial');
      return new Set(
        [...leases].flatMap(([ordinal, { expiresAt }]) => (holds(expiresAt, now) ? ordinal : [])),
      );
    },
  };
}
