import type { ReportedTrial } from '../contract/report.ts';
import type { BegunAttempt } from '../record/attempt.ts';
import type { LeftState } from '../record/files.ts';
import type { Fingerprint } from '../record/fingerprint.ts';
import type { TrialListing } from '../record/listing.ts';
import type { Redactor } from '../redaction/redactor.ts';
import type { TrialKey } from './batches.ts';
import type { Blob, BlobStore } from './blobs.ts';
import { fingerprintKey } from './fingerprints.ts';
import { storeListing } from './listings.ts';
import { type Records, Table } from './records.ts';
import { finishAbove } from './trial-states.ts';
import type { Workspaces } from './workspaces.ts';

export type Verdict = 'passed' | 'failed' | 'void';

/**
 * How an attempt ended, if it did not give the trial its result. `void`: it failed by itself, which counts
 * towards the limit. `outage`: the engine was down. `canceled`: its user ended it. `interrupted`: its process
 * died. `lost`: another agent has the trial.
 */
export type Abandonment = 'void' | 'outage' | 'canceled' | 'interrupted' | 'lost';

export interface FinishedTrial {
  verdict: Verdict;
  /** Why there is no verdict. Stored as JSON. */
  cause?: unknown;
  /** The whole result. Stored as JSON. */
  result: unknown;
  fingerprint?: Fingerprint | undefined;
  /** What lists show of it. If not given, the first list reads it from the result. */
  listing?: TrialListing | undefined;
  /** What the service gets; or a function that makes it, given the blob with the result. */
  report: ReportedTrial | ((result: Blob) => ReportedTrial);
  /** What was kept of the state that the agent left. */
  left?: LeftState | undefined;
  /** The number of the lease under which the trial ran. */
  lease?: number | undefined;
}

/** Trials and their attempts. When a method returns, its change is on disk. */
export class Trials extends Table {
  readonly #blobs: BlobStore;

  readonly #redactor: Redactor | undefined;
  readonly #workspaces: Workspaces;
  /** The variants in which few harnesses were broken when that was last asked, until another one is. */
  readonly #working = new Set<unknown>();

  /** @param redactor removes secrets from causes; the blob store has its own */
  constructor(
    records: Records,
    blobs: BlobStore,
    { redactor, workspaces }: { redactor?: Redactor | undefined; workspaces: Workspaces },
  ) {
    super(records);
    this.#blobs = blobs;
    this.#redactor = redactor;
    this.#workspaces = workspaces;
  }

  beginAttempt(trial: TrialKey): BegunAttempt {
    const records = this.records;
    return records.transaction(() => {
      const last = records.value('SELECT max(number) FROM attempts WHERE trial = ?', trial);
      const number = Number(last ?? 0) + 1;
      records.become({ subject: 'trial', key: trial, state: 'running' });
      const key = records.insert('attempts', { trial, number, startedAt: records.now() });
      records.note({ subject: 'attempt', key, state: 'begun' });
      return { key, trial, number };
    });
  }

  /** How many attempts ended as `void`, in this process and in earlier ones. */
  failedAttempts(trial: TrialKey): number {
    const failed = "SELECT count(*) FROM attempts WHERE trial = ? AND ending = 'void'";
    return Number(this.records.value(failed, trial));
  }

  /**
   * The trials of a trial's variant whose harness did not work, in the order in which they ended. They decide
   * whether more trials of the variant are worth running. Those that ended before the trial's run was added
   * to the ledger do not count: a person who reruns a cell may have repaired the harness.
   */
  brokenHarnesses(trial: TrialKey): TrialKey[] {
    return this.#broken(trial, 'ORDER BY attempts.ended_at, attempts.key');
  }

  /** Whether there are at least so many of {@link brokenHarnesses}. This is asked before each trial. */
  hasBrokenHarnesses(trial: TrialKey, most: number): boolean {
    const variant = this.records.value(
      `SELECT json_array(runs.batch, runs.variant, runs.variant_index)
       FROM trials JOIN runs ON runs.key = trials.run WHERE trials.key = ?`,
      trial,
    );
    if (this.#working.has(variant)) return false;
    const isBroken = this.#broken(trial, `LIMIT ${most}`).length >= most;
    if (!isBroken) this.#working.add(variant);
    return isBroken;
  }

  #broken(trial: TrialKey, tail: string): TrialKey[] {
    const rows = this.records.all(
      `SELECT others.key FROM trials JOIN runs ON runs.key = trials.run
         JOIN runs AS beside ON beside.batch = runs.batch AND beside.variant = runs.variant
           AND beside.variant_index IS runs.variant_index
         JOIN trials AS others ON others.run = beside.key AND others.verdict = 'void'
         JOIN attempts ON attempts.trial = others.key AND attempts.ending = 'void'
       WHERE trials.key = ? AND attempts.ended_at >= coalesce(
           (SELECT min(at) FROM changes WHERE subject = 'run' AND of = runs.key), 0)
         AND CASE WHEN json_valid(attempts.cause) THEN attempts.cause ->> '$.kind' END = 'harness'
       ${tail}`,
      trial,
    );
    return rows.map(({ key }) => Number(key));
  }

  /**
   * Ends an attempt and queues its trial again.
   *
   * @param result what the attempt found; the ledger keeps it with the attempt
   */
  async abandonAttempt(
    attempt: BegunAttempt,
    ending: Exclude<Abandonment, 'interrupted'>,
    cause?: unknown,
    result?: unknown,
  ): Promise<void> {
    const blob = result === undefined ? null : await this.#blobs.putJson(result);
    this.records.transaction(() => {
      this.#endAttempt(attempt.key, ending, cause, blob);
      this.records.become({ subject: 'trial', key: attempt.trial, state: 'queued' });
    });
  }

  /**
   * Stores a trial's result and queues its report, both or neither. Throws if they cannot be written to disk.
   */
  async finish(attempt: BegunAttempt, finished: FinishedTrial): Promise<void> {
    const { report } = finished;
    const result = this.#blobs.json(finished.result);
    const body = this.#blobs.json(typeof report === 'function' ? report(result.blob) : report);
    // A disk syncs both in the time of one.
    const storing = [result.store(), body.store()];
    await Promise.allSettled(storing);
    await Promise.all(storing);
    const listing = finished.listing && this.#redacted(finished.listing);
    const records = this.records;
    records.transaction(() => {
      const now = records.now();
      this.#endAttempt(attempt.key, finished.verdict, finished.cause, null);
      records.run(
        `UPDATE trials SET state = 'finished', verdict = ?, result = ?, finished_at = ?, fingerprint = ?
         WHERE key = ?`,
        finished.verdict,
        result.blob.sha256,
        now,
        fingerprintKey(records, finished.fingerprint),
        attempt.trial,
      );
      if (listing !== undefined)
        storeListing(records, attempt.trial, { listing, recordBytes: result.blob.byteSize });
      records.note({ subject: 'trial', key: attempt.trial, state: 'finished', detail: finished.verdict });
      const { lease } = finished;
      records.insert('reports', {
        trial: attempt.trial,
        body: body.blob.sha256,
        state: 'queued',
        nextAt: now,
        since: now,
        lease,
      });
      records.note({ subject: 'report', key: attempt.trial, state: 'queued' });
      this.#workspaces.keep(attempt.trial, finished.left);
      finishAbove(records, attempt.trial);
    });
    if (finished.verdict === 'void') this.#working.clear();
  }

  /**
   * Gives an open trial the result that the service has of it. There is nothing to report then, and the trial
   * counts as left to whoever reported it.
   */
  async take(trial: TrialKey, verdict: Verdict, result: unknown): Promise<void> {
    const blob = await this.#blobs.putJson(result);
    const records = this.records;
    records.transaction(() => {
      records.run(
        `UPDATE trials SET state = 'finished', withdrawn = 'elsewhere', verdict = ?, result = ?, finished_at = ?
         WHERE key = ?`,
        verdict,
        blob,
        records.now(),
        trial,
      );
      records.note({ subject: 'trial', key: trial, state: 'finished', detail: 'the service has its result' });
      finishAbove(records, trial);
    });
  }

  /**
   * A finished trial's whole result as JSON. Throws `BLOB_MISSING` or `BLOB_DAMAGED` if the disk has lost it.
   */
  result(trial: TrialKey): unknown {
    const result = this.records.value('SELECT result FROM trials WHERE key = ?', trial);
    return this.#blobs.readJson(String(result));
  }

  #redacted(value: unknown): string {
    return this.#redactor?.json(value) ?? JSON.stringify(value);
  }

  #endAttempt(key: number, ending: Verdict | Abandonment, cause: unknown, result: string | null): void {
    const records = this.records;
    records.run(
      'UPDATE attempts SET ended_at = ?, ending = ?, cause = ?, result = ? WHERE key = ?',
      records.now(),
      ending,
      cause === undefined ? null : this.#redacted(cause),
      result,
      key,
    );
    records.note({ subject: 'attempt', key, state: ending, detail: kindOf(cause) });
  }
}

function kindOf(cause: unknown): string | undefined {
  const kind = (cause as { kind?: unknown } | undefined)?.kind;
  return kind === undefined ? undefined : String(kind);
}
