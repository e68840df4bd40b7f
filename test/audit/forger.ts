import { createHash } from 'node:crypto';
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ReportedTrial } from '../../src/contract/report.ts';
import { listingOf } from '../../src/record/listing.ts';
import type { TrialRecord } from '../../src/record/trial-record.ts';
import { reportOf } from '../../src/trial/report.ts';

/** What a stored plan is, as far as forgers edit it. */
interface StoredPlan {
  plan: {
    trials: number;
    cases: { request: { id: string; verify?: string; validator?: { source: string }; prompt?: string } }[];
    variants: { model: string; modelConfig?: { prices?: { input: number; output: number } } }[];
  };
}

type Exchange = NonNullable<TrialRecord['models']>['exchanges'][number];

/** A dishonest owner of a copy of a data folder: edits rows and contents, and names contents by their hashes. */
export class Forger implements Disposable {
  readonly folder: string;
  readonly database: DatabaseSync;

  constructor(honest: string, folder: string) {
    this.folder = folder;
    rmSync(folder, { recursive: true, force: true });
    cpSync(honest, folder, { recursive: true });
    this.database = new DatabaseSync(join(folder, 'ledger.db'));
  }

  [Symbol.dispose](): void {
    this.database.close();
  }

  /** @param name `case#ordinal` */
  row(name: string): { key: number; run: number; ordinal: number; result: string; body: string } {
    const [id = '', ordinal = '0'] = name.split('#');
    const row = this.database
      .prepare(
        `SELECT trials.key, trials.run, trials.ordinal, trials.result, reports.body FROM trials
         JOIN runs ON runs.key = trials.run JOIN reports ON reports.trial = trials.key
         WHERE runs.case_id = ? AND trials.ordinal = ?`,
      )
      .get(id, Number(ordinal));
    if (!row) throw new Error(`there is no trial ${name}`);
    return row as ReturnType<Forger['row']>;
  }

  blobPath(sha256: string, store = 'blobs'): string {
    return join(this.folder, store, sha256.slice(0, 2), sha256);
  }

  blob(sha256: string): Buffer {
    return readFileSync(this.blobPath(sha256));
  }

  put(content: string | Buffer): string {
    const sha256 = createHash('sha256').update(content).digest('hex');
    mkdirSync(dirname(this.blobPath(sha256)), { recursive: true });
    writeFileSync(this.blobPath(sha256), content);
    return sha256;
  }

  /** Changes a content in place, so that it no longer has its hash. */
  spoil(sha256: string, store?: string): void {
    const path = this.blobPath(sha256, store);
    const content = readFileSync(path);
    content[content.length - 2] = (content[content.length - 2] ?? 0) ^ 1;
    writeFileSync(path, content);
  }

  remove(sha256: string): void {
    rmSync(this.blobPath(sha256));
  }

  record(name: string): TrialRecord {
    return JSON.parse(this.blob(this.row(name).result).toString('utf8'));
  }

  report(name: string): ReportedTrial {
    return JSON.parse(this.blob(this.row(name).body).toString('utf8'));
  }

  /** Edits a record, and nothing that follows from it but its verdict in lists. */
  edit(name: string, change: (record: TrialRecord) => void): TrialRecord {
    const record = this.record(name);
    change(record);
    this.database
      .prepare('UPDATE trials SET result = ?, verdict = ?, record_bytes = ? WHERE key = ?')
      .run(
        this.put(JSON.stringify(record)),
        record.verdict,
        JSON.stringify(record).length,
        this.row(name).key,
      );
    return record;
  }

  /** Edits a record, and makes report, list and trajectory anew from it, as Offsite does. */
  editAll(name: string, change: (record: TrialRecord) => void): void {
    const { events, ordinal, caseName, taskIndex } = this.report(name);
    const record = this.edit(name, (edited) => {
      change(edited);
      const file = edited.artifacts?.find(({ path }) => path === '.offsite/trajectory.jsonl');
      const text = (edited.trajectory ?? []).map((entry) => `${JSON.stringify(entry)}\n`).join('');
      if (file) Object.assign(file, { sha256: this.put(text), byteSize: Buffer.byteLength(text) });
    });
    const started = events.find(({ _tag }) => _tag === 'Started') as { sessionId?: string } | undefined;
    const model = record.subject?.model ?? '';
    const sessionId = started?.sessionId ?? '';
    const { result: sha256 } = this.row(name);
    const named = { sha256, byteSize: this.blob(sha256).length };
    this.sendReport(
      name,
      reportOf(record, { caseName, ordinal, taskIndex, model, sessionId, record: named }),
    );
    this.database
      .prepare('UPDATE trials SET listing = ? WHERE key = ?')
      .run(JSON.stringify(listingOf(record)), this.row(name).key);
  }

  editReport(name: string, change: (report: ReportedTrial) => void): void {
    const report = this.report(name);
    change(report);
    this.sendReport(name, report);
  }

  sendReport(name: string, report: ReportedTrial): void {
    this.database
      .prepare('UPDATE reports SET body = ? WHERE trial = ?')
      .run(this.put(JSON.stringify(report)), this.row(name).key);
  }

  editPlan(change: (plan: StoredPlan['plan']) => void): void {
    const { plan } = this.database.prepare('SELECT plan FROM batches').get() as { plan: string };
    const stored: StoredPlan = JSON.parse(this.blob(plan).toString('utf8'));
    change(stored.plan);
    this.database.prepare('UPDATE batches SET plan = ?').run(this.put(JSON.stringify(stored)));
  }

  /** Replaces a text in the validator of a case, wherever it is kept. */
  loosen(id: string, was: string, now: string): void {
    this.editPlan(({ cases }) => {
      const validator = cases.find(({ request }) => request.id === id)?.request.validator;
      if (validator) validator.source = validator.source.replace(was, now);
    });
    const { setup } = this.database.prepare('SELECT setup FROM runs WHERE case_id = ?').get(id) as {
      setup: string;
    };
    const sha256 = this.put(this.blob(setup).toString('utf8').replace(was, now));
    this.database.prepare('UPDATE runs SET setup = ? WHERE case_id = ?').run(sha256, id);
  }

  /** An exchange of a record, and what else of its account must be changed with it. */
  editExchange(
    name: string,
    change: (exchange: Exchange, account: NonNullable<TrialRecord['models']>) => void,
  ) {
    this.editAll(name, ({ models }) => {
      const exchange = models?.exchanges.at(-1);
      if (!models || !exchange) throw new Error(`${name} asked no model`);
      change(exchange, models);
    });
  }

  /** Takes the tokens and the cost of an exchange out of it and out of the sum. */
  uncount(exchange: Exchange, { usage }: NonNullable<TrialRecord['models']>): void {
    const sum = usage.find(({ role }) => role === exchange.role)?.usage ?? {};
    for (const [name, value] of Object.entries(exchange.usage) as [keyof typeof sum, number][])
      sum[name] = (sum[name] ?? 0) - value;
    exchange.usage = {};
  }

  /** Adds a later grading whose record is that of the trial with some changes. */
  gradeAgain(name: string, verdict: string, change: Partial<TrialRecord>): void {
    const record = this.put(JSON.stringify({ ...this.record(name), ...change }));
    this.database
      .prepare("INSERT INTO gradings (trial, graded_at, verdict, result, basis) VALUES (?, 1, ?, ?, 'b')")
      .run(this.row(name).key, verdict, record);
  }

  /** Puts the archive that a record names into the list of workspaces. */
  keepArchiveOf(name: string): void {
    const { left } = this.record(name);
    if (left?.kind !== 'archive') throw new Error(`${name} left no archive`);
    this.database
      .prepare('UPDATE workspaces SET name = ?, byte_size = ? WHERE trial = ?')
      .run(left.sha256, left.byteSize, this.row(name).key);
  }

  /** Replaces a text by one of the same length in a record and in all its exchanges. */
  rewrite(name: string, was: string, now: string): void {
    this.editAll(name, (record) => {
      for (const exchange of record.models?.exchanges ?? [])
        for (const body of ['requestBody', 'responseBody'] as const)
          exchange[body] = this.put(
            this.blob(exchange[body] ?? '')
              .toString('utf8')
              .replaceAll(was, now),
          );
      for (const entry of [...(record.trajectory ?? []), ...(record.derivedTrajectory ?? [])])
        entry.command = entry.command.replaceAll(was, now);
    });
  }

  drop(name: string): void {
    const { key } = this.row(name);
    for (const table of ['reports', 'workspaces', 'attempts', 'gradings'])
      this.database.prepare(`DELETE FROM ${table} WHERE trial = ?`).run(key);
    this.database.prepare('DELETE FROM trials WHERE key = ?').run(key);
  }

  /** Adds a trial that is another one under a new ordinal. */
  copy(name: string, ordinal: number): void {
    const { key } = this.row(name);
    this.database
      .prepare(
        `INSERT INTO trials (run, ordinal, state, verdict, result, finished_at, fingerprint)
         SELECT run, ?, state, verdict, result, finished_at, fingerprint FROM trials WHERE key = ?`,
      )
      .run(ordinal, key);
  }

  /** Gives two trials each other's ordinal. */
  swap(name: string, other: string): void {
    const [one, two] = [this.row(name), this.row(other)];
    const set = this.database.prepare('UPDATE trials SET ordinal = ? WHERE key = ?');
    set.run(99, one.key);
    set.run(one.ordinal, two.key);
    set.run(two.ordinal, one.key);
  }

  /** Puts the archive of one trial in the place of another's. */
  swapArchive(name: string, other: string): void {
    copyFileSync(this.archive(other), this.archive(name));
  }

  archive(name: string): string {
    const { left } = this.record(name);
    if (left?.kind !== 'archive') throw new Error(`${name} left no archive`);
    return this.blobPath(left.sha256, 'workspaces');
  }
}
