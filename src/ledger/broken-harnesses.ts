import type { TrialKey } from './batches.ts';
import type { Records } from './records.ts';

/** A trial that is void because its harness did not work. */
interface Broken {
  trial: TrialKey;
  /** Epoch milliseconds. */
  endedAt: number;
}

/** The variant of the trial that is asked about, and since when the ledger has the trial's run. */
interface AskedVariant {
  batch: number;
  variant: string;
  variantIndex: number | null;
  since: number;
}

/**
 * The trials whose harness did not work, by batch and variant. They decide whether more trials of a variant
 * are worth running. This is looked up for every trial that starts, so each variant is read once and cached.
 * Trials that ended before a run was added to the ledger do not count for that run: a person who reruns a
 * cell may have repaired the harness.
 */
export class BrokenHarnesses {
  readonly #records: Records;
  readonly #known = new Map<string, Broken[]>();

  constructor(records: Records) {
    this.#records = records;
  }

  /** How many such trials there are in a trial's variant. */
  count(trial: TrialKey): number {
    return this.#of(trial).length;
  }

  /** A trial's position among such trials of its variant, from 1; 0 if it is not one of them. */
  position(trial: TrialKey): number {
    return this.#of(trial).findIndex((broken) => broken.trial === trial) + 1;
  }

  /** Adds a trial whose result the ledger already has. */
  add(trial: TrialKey, endedAt: number): void {
    const known = this.#variant(this.#asked(trial));
    if (!known.some((broken) => broken.trial === trial)) known.push({ trial, endedAt });
  }

  #of(trial: TrialKey): Broken[] {
    const asked = this.#asked(trial);
    return this.#variant(asked).filter(({ endedAt }) => endedAt >= asked.since);
  }

  #asked(trial: TrialKey): AskedVariant {
    const row = this.#records.get(
      `SELECT runs.batch, runs.variant, runs.variant_index,
         (SELECT min(changes.at) FROM changes
           WHERE changes.subject = 'run' AND changes.of = runs.key) AS since
       FROM trials JOIN runs ON runs.key = trials.run WHERE trials.key = ?`,
      trial,
    );
    return {
      batch: Number(row?.batch),
      variant: String(row?.variant),
      variantIndex: row?.variant_index == null ? null : Number(row.variant_index),
      since: Number(row?.since ?? 0),
    };
  }

  #variant({ batch, variant, variantIndex }: AskedVariant): Broken[] {
    const name = JSON.stringify([batch, variant, variantIndex]);
    const known = this.#known.get(name);
    if (known) return known;
    const read = this.#records
      .all(
        `SELECT attempts.trial, attempts.ended_at FROM attempts
           JOIN trials ON trials.key = attempts.trial JOIN runs ON runs.key = trials.run
         WHERE runs.batch = ? AND runs.variant = ? AND runs.variant_index IS ? AND trials.state = 'finished'
           AND attempts.ending = 'void' AND attempts.ended_at IS NOT NULL
           AND CASE WHEN json_valid(attempts.cause)
             THEN json_extract(attempts.cause, '$.kind') END = 'harness'
         ORDER BY attempts.ended_at, attempts.key`,
        batch,
        variant,
        variantIndex,
      )
      .map((row): Broken => ({ trial: Number(row.trial), endedAt: Number(row.ended_at) }));
    this.#known.set(name, read);
    return read;
  }
}
