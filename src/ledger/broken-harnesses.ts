import type { TrialKey } from './batches.ts';
import type { Records } from './records.ts';

/** A trial that is void because its harness did not work. */
interface Broken {
  trial: TrialKey;
  /** Epoch milliseconds. */
  endedAt: number;
}

/** A variant of a batch, and since when the ledger has the run that is asked about. */
interface Asked {
  batch: number;
  variant: string;
  variantIndex: number | null;
  since: number;
}

/**
 * The trials whose harness did not work, by batch and variant: whether more of a variant are worth running. A
 * variant's are read once and kept, as every trial that begins asks. Those that ended before a run came into
 * the ledger do not count for it: who has a cell run again may have mended it.
 */
export class BrokenHarnesses {
  readonly #records: Records;
  readonly #known = new Map<string, Broken[]>();

  constructor(records: Records) {
    this.#records = records;
  }

  /** How many there are of a trial's variant. */
  count(trial: TrialKey): number {
    return this.#of(trial).length;
  }

  /** Which one of them a trial is, from 1; 0 where it is none. */
  position(trial: TrialKey): number {
    return this.#of(trial).findIndex((broken) => broken.trial === trial) + 1;
  }

  /** Notes a trial whose result the ledger has. */
  add(trial: TrialKey, endedAt: number): void {
    const known = this.#variant(this.#asked(trial));
    if (!known.some((broken) => broken.trial === trial)) known.push({ trial, endedAt });
  }

  #of(trial: TrialKey): Broken[] {
    const asked = this.#asked(trial);
    return this.#variant(asked).filter(({ endedAt }) => endedAt >= asked.since);
  }

  #asked(trial: TrialKey): Asked {
    const row = this.#records.get(
      `SELECT runs.batch, runs.variant, runs.variant_index,
         (SELECT min(changes.at) FROM changes WHERE changes.subject = 'run' AND changes.of = runs.key) AS since
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

  #variant({ batch, variant, variantIndex }: Asked): Broken[] {
    const name = JSON.stringify([batch, variant, variantIndex]);
    const known = this.#known.get(name);
    if (known) return known;
    const read = this.#records
      .all(
        `SELECT attempts.trial, attempts.ended_at FROM attempts
           JOIN trials ON trials.key = attempts.trial JOIN runs ON runs.key = trials.run
         WHERE runs.batch = ? AND runs.variant = ? AND runs.variant_index IS ? AND trials.state = 'finished'
           AND attempts.ending = 'void' AND attempts.ended_at IS NOT NULL
           AND CASE WHEN json_valid(attempts.cause) THEN json_extract(attempts.cause, '$.kind') END = 'harness'
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
