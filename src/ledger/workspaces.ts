import { createReadStream, type ReadStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import type { LeftState } from '../record/files.ts';
import type { Redactor, StreamSearch } from '../redaction/redactor.ts';
import { type Blob, BlobStore } from './blobs.ts';
import { type Records, Table, type TrialKey } from './records.ts';

/** Milliseconds after which a file that belongs to no trial counts as left by a crash. */
const lostMs = 24 * 60 * 60_000;

const keptArchives = "WHERE kind = 'archive' AND removed_at IS NULL";

/** What the ledger has of the state that a trial left. */
export interface KeptWorkspace {
  trial: TrialKey;
  kind: 'untouched' | 'archive' | 'image';
  /** An archive's sha256, or an image's id on the engine. */
  name: string | undefined;
  /** Bytes of the archive before it was compressed. */
  byteSize: number;
  /** Bytes on the disk. */
  storedSize: number;
  /** Epoch milliseconds. */
  keptAt: number;
  /** Epoch milliseconds; undefined if it is still there. */
  removedAt: number | undefined;
}

/**
 * What trials left: archives of their workspaces, as files named by their hash, and images on the engine,
 * which the engine keeps under the budget of snapshots. Files are written as blobs are, so that each is
 * complete.
 */
export class Workspaces extends Table {
  readonly #files: BlobStore;
  readonly #redactor: Redactor | undefined;

  /**
   * Only the owner can read the folder: its archives have all that agents wrote.
   *
   * @param redactor knows the keys that no archive may hold
   */
  constructor(records: Records, folder: string, redactor?: Redactor) {
    super(records);
    this.#redactor = redactor;
    // Without the ledger's reserve, which is for results.
    this.#files = new BlobStore(folder);
  }

  get folder(): string {
    return this.#files.folder;
  }

  /** Looks for keys in an archive; undefined if none are known. */
  search(): StreamSearch | undefined {
    return this.#redactor?.search();
  }

  /** Stores an archive. It belongs to nobody until {@link keep}. Throws `BLOB_NOT_WRITTEN`. */
  store(content: AsyncIterable<Uint8Array>): Promise<Blob> {
    return this.#files.put(content);
  }

  /** Removes the archive of an attempt that does not count. */
  async discard(left: LeftState | undefined): Promise<void> {
    if (left?.kind === 'archive' && !this.#isNeeded(left.sha256)) await this.#files.remove(left.sha256);
  }

  /** Notes what was kept of a trial. Call it in the transaction that stores the trial's result. */
  keep(trial: TrialKey, left: LeftState | undefined): void {
    if (left === undefined || left.kind === 'not-kept') return;
    const name = left.kind === 'archive' ? left.sha256 : left.kind === 'image' ? left.imageId : null;
    const byteSize = left.kind === 'archive' ? left.byteSize : 0;
    const storedSize = left.kind === 'untouched' ? 0 : left.storedSize;
    this.records.run(
      `INSERT OR REPLACE INTO workspaces (trial, kind, name, byte_size, stored_size, kept_at)
       VALUES (?, ?, ?, ?, ?, ?)`,
      trial,
      left.kind,
      name,
      byteSize,
      storedSize,
      this.records.now(),
    );
  }

  /** What was kept of a trial; undefined if nothing was. */
  of(trial: TrialKey): KeptWorkspace | undefined {
    return this.records.select<KeptWorkspace>('SELECT * FROM workspaces WHERE trial = ?', trial)[0];
  }

  /** The archives that are kept now, and how many bytes of disk they take. */
  sum(): { count: number; bytes: number } {
    const row = this.records.get(
      `SELECT count(*) AS count, sum(stored_size) AS bytes FROM workspaces ${keptArchives}`,
    );
    return { count: Number(row?.count ?? 0), bytes: Number(row?.bytes ?? 0) };
  }

  /** A stored archive, compressed. The stream fails if the file does not exist. */
  read(sha256: string): ReadStream {
    return createReadStream(this.#files.pathOf(sha256));
  }

  /** Reads an archive and compares its hash. */
  verify(sha256: string): Promise<'whole' | 'damaged' | 'missing'> {
    return this.#files.verify(sha256);
  }

  has(sha256: string): boolean {
    return this.sizeOf(sha256) !== undefined;
  }

  /** Bytes of a stored archive; undefined if it does not exist. */
  sizeOf(sha256: string): number | undefined {
    return this.#files.stat(sha256)?.byteSize;
  }

  pathOf(sha256: string): string {
    return this.#files.pathOf(sha256);
  }

  /** Removes the oldest archives until the others take no more than the given number of bytes. */
  async free(budget: number): Promise<{ count: number; bytes: number }> {
    const records = this.records;
    const removed: KeptWorkspace[] = [];
    if (this.sum().bytes > budget) {
      records.transaction(() => {
        let { bytes } = this.sum();
        const oldest = records.select<KeptWorkspace>(
          `SELECT * FROM workspaces ${keptArchives} ORDER BY kept_at, trial`,
        );
        for (const one of oldest) {
          if (bytes <= budget) break;
          records.run('UPDATE workspaces SET removed_at = ? WHERE trial = ?', records.now(), one.trial);
          removed.push(one);
          bytes -= one.storedSize;
        }
      });
    }
    for (const { name } of removed)
      if (name !== undefined && !this.#isNeeded(name)) await this.#files.remove(name);
    const bytes = removed.reduce((sum, { storedSize }) => sum + storedSize, 0);
    return { count: removed.length, bytes };
  }

  /** Removes files that belong to no trial, and that are too old to be those of a trial that still runs. */
  async removeLost(now: number): Promise<void> {
    const { blobs, partials } = await this.#files.list();
    for (const sha256 of blobs) {
      const found = this.#isNeeded(sha256) ? undefined : this.#files.stat(sha256);
      if (found && now - found.putAt >= lostMs) await this.#files.remove(sha256);
    }
    for (const file of partials) {
      if (now - (await stat(file)).mtimeMs >= lostMs) await rm(file, { force: true });
    }
  }

  #isNeeded(name: string): boolean {
    return (
      this.records.get('SELECT 1 FROM workspaces WHERE name = ? AND removed_at IS NULL', name) !== undefined
    );
  }
}
