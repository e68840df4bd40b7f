import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, open, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { inputError, messageOf, OffsiteError, systemHint } from '../base/offsite-error.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import { listTrials } from '../ledger/find.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { listAttempts, type StoredTrial } from '../ledger/trial-rows.ts';
import type { Verdict } from '../ledger/trials.ts';
import type { ExportedTrial } from '../record/exported-trial.ts';
import { namedBlobs } from '../record/named-blobs.ts';
import { readRecord } from '../record/read-record.ts';
import type { TrialRecord } from '../record/trial-record.ts';

/** Takes the parts of an export one after the other. */
export type Write = (part: string | Uint8Array) => Promise<void>;

/** A file being written. It appears under its name when it is kept, and replaces an existing file. */
export interface ExportFile extends AsyncDisposable {
  write: Write;
  keep(): Promise<void>;
}

/** A form that takes the trials of a batch one after the other. */
export interface TrialForm {
  add(trial: ExportedTrial): Promise<void>;
  /** Writes what needs all trials. */
  end(): Promise<void>;
}

/** Full records as JSON Lines. */
export function jsonForm(write: Write): TrialForm {
  return { add: (trial) => write(`${JSON.stringify(trial)}\n`), end: async () => undefined };
}

/**
 * Opens a file to write, or standard output for `-`. If a file is not kept, nothing is left of it. Throws
 * `FILE_NOT_WRITTEN`.
 */
export async function openExport(file: string): Promise<ExportFile> {
  const ended = async () => undefined;
  if (file === '-') return { write: print, keep: ended, [Symbol.asyncDispose]: ended };
  const partial = join(dirname(file), `.offsite-${randomBytes(6).toString('hex')}.partial`);
  const failed = (error: unknown) => notWritten(file, error, 'Check that the folder exists.');
  const handle = await open(partial, 'wx').catch(failed);
  let isKept = false;
  return {
    write: (part) => handle.writeFile(part).catch(failed),
    async keep() {
      await handle.close();
      await rename(partial, file).catch(failed);
      isKept = true;
    },
    async [Symbol.asyncDispose]() {
      if (isKept) return;
      await handle.close().catch(() => undefined);
      await rm(partial, { force: true });
    },
  };
}

/** An error of standard output is told by its listener: its reader may only have read enough. */
function print(part: string | Uint8Array): Promise<void> {
  return new Promise((resolve) => process.stdout.write(part, () => resolve()));
}

/**
 * Opens a new folder to write files to. It appears under its name when it is kept. Throws `FILE_NOT_WRITTEN`,
 * also for a folder that exists.
 */
export async function openFolder(folder: string) {
  const partial = `${folder}.${randomBytes(6).toString('hex')}.partial`;
  const failed = (error: unknown) => notWritten(folder, error, 'Remove the folder, or name another one.');
  if (existsSync(folder)) failed(new Error('it exists'));
  return {
    async put(path: string, text: string) {
      const file = join(partial, path);
      await mkdir(dirname(file), { recursive: true }).catch(failed);
      await writeFile(file, text).catch(failed);
    },
    keep: () => rename(partial, folder).catch(failed),
    [Symbol.asyncDispose]: () => rm(partial, { recursive: true, force: true }),
  };
}

function notWritten(place: string, cause: unknown, otherwise: string): never {
  throw inputError('FILE_NOT_WRITTEN', `cannot write ${place}: ${messageOf(cause)}`, {
    hint: `Nothing was changed. ${systemHint(cause, otherwise)}`,
    cause,
  });
}

/**
 * Writes a file part by part, and resolves with what `produce` gave. If that rejects, nothing is left. Throws
 * the input error `FILE_NOT_WRITTEN`.
 */
export async function writeExport<Result>(
  file: string,
  produce: (write: Write) => Promise<Result>,
): Promise<Result> {
  await using target = await openExport(file);
  const result = await produce(target.write);
  await target.keep();
  return result;
}

export interface ReadOptions {
  /** Only trials with these verdicts. Default: all finished trials. */
  only?: readonly Verdict[] | undefined;
  /** Whether to read the texts that records refer to. */
  withOutputs?: boolean | undefined;
  /** Receives why a record cannot be read. Its trial is left out. */
  unreadable?: ((message: string) => void) | undefined;
}

/** The finished trials of a batch one by one, in the order of its cases, variants and ordinals. */
export function* exportedTrials(
  ledger: Ledger,
  batch: StoredBatch,
  { only, withOutputs = false, unreadable = () => undefined }: ReadOptions = {},
): Generator<ExportedTrial> {
  const { id, service, suite, startedAt, commit } = batch;
  for (const trial of listTrials(ledger.records, batch.key)) {
    if (trial.verdict === undefined || trial.result === undefined) continue;
    if (only && !only.includes(trial.verdict)) continue;
    const read = (sha256: string) => recordOf(ledger, sha256, trial, unreadable);
    const record = read(trial.result);
    if (!record) continue;
    const { runId, caseId, caseName, variant, ordinal } = trial;
    yield {
      version: 1,
      batch: { id, service, suite, startedAt, ...(commit && { commit }) },
      run: { id: runId, caseId, caseName, variant },
      ordinal,
      attempts: listAttempts(ledger.records, trial.key).map(({ result, ...attempt }) => ({
        ...attempt,
        ...(result !== undefined && { record: read(result) }),
      })),
      record,
      ...(withOutputs && { contents: contentsOf(ledger, record) }),
    };
  }
}

function recordOf(
  { blobs }: Ledger,
  sha256: string,
  { caseName, variant, ordinal }: StoredTrial,
  unreadable: (message: string) => void,
): TrialRecord | undefined {
  try {
    return readRecord(blobs.readClean(sha256), `the record of ${caseName} · ${variant} #${ordinal}`);
  } catch (error) {
    if (!(error instanceof OffsiteError || error instanceof SyntaxError)) throw error;
    unreadable(messageOf(error));
    return undefined;
  }
}

/** The texts that a record refers to. What was pruned or is damaged is left out. */
function contentsOf(ledger: Ledger, record: TrialRecord) {
  const named = namedBlobs(record).filter(({ of }) => of !== 'artifact');
  const contents: Record<string, string> = {};
  for (const { sha256 } of named) {
    const content = ledger.blobs.tryReadClean(sha256);
    if (content) contents[sha256] = content.toString('utf8');
  }
  return contents;
}
