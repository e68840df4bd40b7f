import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { infrastructureError } from '../base/offsite-error.ts';
import type { Redactor } from '../redaction/redactor.ts';
import { Batches, type StoredBatch } from './batches.ts';
import { BlobStore } from './blobs.ts';
import { BuildLogs } from './build-logs.ts';
import { Crashes } from './crashes.ts';
import { openDatabase } from './database.ts';
import { FleetTasks } from './fleet-tasks.ts';
import { FoundRuns } from './found-runs.ts';
import { Gradings } from './gradings.ts';
import { forgetCheck, lastCheck, noteCheck } from './last-check.ts';
import { isLocked, type Lock, type LockHolder, lockHolder, takeLock } from './lock.ts';
import { migrations } from './migrations.ts';
import { Outbox } from './outbox.ts';
import { Queue } from './queue.ts';
import { Records, type TransactionWatch } from './records.ts';
import { Reserve } from './reserve.ts';
import { Sets } from './sets.ts';
import { Starts } from './starts.ts';
import { Trials } from './trials.ts';
import { Workspaces } from './workspaces.ts';

/**
 * The durable record in the data folder: what was started, every attempt, every result, the reports to
 * deliver, and a journal of all changes. When a method returns, its change is on disk.
 */
export class Ledger implements Disposable {
  readonly dataFolder: string;
  /** Disk space for the last results when the disk fills up. A process that runs trials takes it. */
  readonly reserve: Reserve;
  readonly blobs: BlobStore;
  readonly starts: Starts;
  readonly sets: Sets;
  readonly batches: Batches;
  readonly foundRuns: FoundRuns;
  readonly trials: Trials;
  readonly queue: Queue;
  readonly crashes: Crashes;
  readonly buildLogs: BuildLogs;
  readonly outbox: Outbox;
  /** What trials left, kept to grade it again. */
  readonly workspaces: Workspaces;
  readonly gradings: Gradings;
  readonly fleetTasks: FleetTasks;
  /** The tables, for code that needs all of them: check, backup, prune. */
  readonly records: Records;
  readonly #checkedAt: number | undefined;

  /**
   * Opens or creates the ledger of a data folder, and checks it for damage, unless it is as Offsite left it
   * and was checked within a day: reading a damaged part throws too. Throws as {@link openDatabase}
   * does, `DATABASE_DAMAGED`, and `LEDGER_LOST` if there are blobs, but not the database that they belong to.
   *
   * @param watch called around every transaction
   * @param redactor removes secrets from everything that is stored
   * @param isChecked false for what only reads: the check reads the whole database
   */
  constructor(
    dataFolder: string,
    clock: Clock,
    {
      watch,
      redactor,
      isChecked = true,
    }: { watch?: TransactionWatch; redactor?: Redactor; isChecked?: boolean } = {},
  ) {
    const file = join(dataFolder, 'ledger.db');
    this.dataFolder = dataFolder;
    this.reserve = new Reserve(dataFolder);
    refuseLost(dataFolder, file);
    const checkedAt = lastCheck(file, clock.now());
    const database = openDatabase(file, migrations);
    this.records = new Records({ file, database, clock, watch, reserve: this.reserve });
    try {
      if (isChecked && checkedAt === undefined) this.records.check('quick');
      this.blobs = new BlobStore(join(dataFolder, 'blobs'), this.reserve, redactor);
    } catch (error) {
      this.records[Symbol.dispose]();
      throw error;
    }
    this.#checkedAt = checkedAt ?? (isChecked ? clock.now() : undefined);
    this.workspaces = new Workspaces(this.records, join(dataFolder, 'workspaces'), redactor);
    this.gradings = new Gradings(this.records, this.blobs);
    this.starts = new Starts(this.records);
    this.sets = new Sets(this.records);
    this.batches = new Batches(this.records);
    this.foundRuns = new FoundRuns(this.records);
    this.trials = new Trials(this.records, this.blobs, { redactor, workspaces: this.workspaces });
    this.queue = new Queue(this.records);
    this.crashes = new Crashes(this.records);
    this.buildLogs = new BuildLogs(this.records, this.blobs);
    this.outbox = new Outbox(this.records, this.blobs);
    this.fleetTasks = new FleetTasks(this.records);
  }

  /**
   * The name by which services know the agents of this data folder, made when it is first asked for. The
   * processes of a data folder share it: its locks keep them from running the same trial.
   */
  get agentId(): string {
    const { records } = this;
    const known = () => records.value('SELECT id FROM agent') as string | undefined;
    const add = () =>
      records.value('INSERT INTO agent (id) VALUES (?) RETURNING id', `agent-${randomUUID()}`);
    return known() ?? String(records.transaction(() => known() ?? add()));
  }

  /** Takes a lock of this data folder, freed when the process ends; undefined if another process holds it. */
  takeLock(name: string): Lock | undefined {
    return takeLock(this.dataFolder, name);
  }

  /** The process that holds a lock which is held; undefined if it is not known. */
  lockHolder(name: string): LockHolder | undefined {
    return lockHolder(this.dataFolder, name);
  }

  /** Whether a process works on a batch now. */
  isWorkedOn({ state, lock }: Pick<StoredBatch, 'state' | 'lock'>): boolean {
    return state === 'open' && lock !== undefined && isLocked(this.dataFolder, lock);
  }

  [Symbol.dispose](): void {
    this.records[Symbol.dispose]();
    const { file, isDamaged } = this.records;
    if (isDamaged) forgetCheck(file);
    else if (this.#checkedAt !== undefined) noteCheck(file, this.#checkedAt);
  }
}

/** A new database beside blobs would count as a new folder, and the results as unused. */
function refuseLost(dataFolder: string, file: string): void {
  const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size;
  const size = sizeOf(file);
  if ((size ?? 0) > 0 || (sizeOf(`${file}-wal`) ?? 0) > 0 || !hasBlobs(join(dataFolder, 'blobs'))) return;
  const older = readdirSync(dataFolder).filter((name) => /^ledger\.db\.before-v\d+$/.test(name));
  const beside = older.length === 0 ? '' : ` ${older.join(' and ')} in the folder may be an older one.`;
  throw infrastructureError(
    'LEDGER_LOST',
    `${file} ${size === undefined ? 'is missing' : 'is empty'}, and ${join(dataFolder, 'blobs')} has results: without it, nobody knows which`,
    {
      hint: `Copy ledger.db there from a backup (offsite data backup makes them).${beside} To begin anew, name another data folder, or move this one away.`,
    },
  );
}

function hasBlobs(folder: string): boolean {
  if (!existsSync(folder)) return false;
  const isBlob = (name: string) => /^[0-9a-f]{2}$/.test(name) && readdirSync(join(folder, name)).length > 0;
  return readdirSync(folder).some(isBlob);
}
