import type { BlobStore } from './blobs.ts';
import { type Records, Table } from './records.ts';

/** A step of an environment, or a search of one, that ran once and is shared by many trials. */
export interface Build {
  /** Epoch milliseconds. */
  startedAt: number;
  durationMs: number;
  /** The blob with what it printed. Undefined if it printed nothing, or the blob was pruned. */
  log: string | undefined;
}

/** What the steps of environments printed when they ran, which may have been long before a trial. */
export class BuildLogs extends Table {
  readonly #blobs: BlobStore;

  constructor(records: Records, blobs: BlobStore) {
    super(records);
    this.#blobs = blobs;
  }

  /** @param step the hash of all that goes into the step */
  async add(step: string, build: { startedAt: number; durationMs: number; output: string }): Promise<Build> {
    const { startedAt, durationMs, output } = build;
    const log = output === '' ? undefined : (await this.#blobs.put(Buffer.from(output))).sha256;
    this.records.transaction(() =>
      this.records.run(
        'INSERT OR REPLACE INTO builds (step, started_at, duration_ms, log) VALUES (?, ?, ?, ?)',
        step,
        Math.round(startedAt),
        Math.round(durationMs),
        log ?? null,
      ),
    );
    return { startedAt, durationMs, log };
  }

  /** Undefined if no process of this ledger ran the step. */
  of(step: string): Build | undefined {
    const columns = 'started_at, duration_ms, log';
    const [build] = this.records.select<Build>(`SELECT ${columns} FROM builds WHERE step = ?`, step);
    if (build?.log === undefined || this.#blobs.stat(build.log) !== undefined) return build;
    return { ...build, log: undefined };
  }
}
