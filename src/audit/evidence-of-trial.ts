import { createHash } from 'node:crypto';
import type { ReadStream } from 'node:fs';
import { pipeline } from 'node:stream';
import { createZstdDecompress } from 'node:zlib';
import { type OpenBatch, openBatch } from '../agent/batch-run.ts';
import { specify } from '../agent/specify.ts';
import { trialSpec } from '../agent/trial-spec.ts';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { PathRoom, tooManyPaths } from '../base/path-room.ts';
import { keptWorkspaces } from '../bounds/sandbox.ts';
import type { ReportedTrial } from '../contract/report.ts';
import { nameText } from '../engine/archive/entries.ts';
import { tarEntries } from '../engine/archive/tar-entries.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { foreignService } from '../ledger/platform.ts';
import { listAttempts, type StoredTrial } from '../ledger/trial-rows.ts';
import type { ListedAttempt } from '../record/attempt.ts';
import { readRecord } from '../record/read-record.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import type { Config } from '../suite/config-file.ts';
import type { HarnessOffer } from '../suite/planned-variant.ts';
import type { TrialSpec } from '../trial/spec.ts';
import type { Checks } from './checks.ts';

/** A finished trial, with what the ledger has of it. */
export interface AuditedTrial {
  trial: StoredTrial;
  record: TrialRecord;
  /** Undefined if none was made: the service had the result. */
  report: ReportedTrial | undefined;
  attempts: ListedAttempt[];
  /** What was to be done, from definition and setup; or why that is not known. */
  spec: TrialSpec | string;
  /** The same from the definition alone. Undefined for a run that somebody else planned. */
  planned?: TrialSpec | undefined;
}

export interface DefinitionParts {
  ledger: Ledger;
  config: Config;
  harnesses: readonly HarnessOffer[];
}

/**
 * Says what a trial of a batch was to do.
 *
 * @param batch its `plan` may be another one than the ledger runs
 */
export function definitionOf(batch: StoredBatch, parts: DefinitionParts) {
  const { ledger, config, harnesses } = parts;
  let open: OpenBatch | undefined;
  const planOf = () => {
    open ??= openBatch(batch, ledger);
    return open;
  };
  return async (trial: StoredTrial): Promise<Pick<AuditedTrial, 'spec' | 'planned'>> => {
    if (trial.origin === 'found' && batch.service === foreignService)
      return { spec: 'its run was not planned with the batch' };
    try {
      const given = { ledger, batches: { planOf }, harnesses, revision: { config } };
      const specified = await specify(trial, given, async () => undefined);
      if (specified.kind !== 'ready') return { spec: specified.reason };
      const { plan, runs } = trial.origin === 'planned' ? planOf() : { plan: undefined, runs: [] };
      const run = runs.find((one) => one.key === trial.run);
      return { spec: specified.spec, planned: plan && run && trialSpec(plan, run, trial) };
    } catch (error) {
      // A plan from elsewhere may have anything in it.
      return { spec: `its definition cannot be read: ${messageOf(error)}` };
    }
  };
}

/** Whether the owner of a file of evidence no longer had a blob, so that its statement does not list it. */
export type IsLeftOut = (sha256: string) => boolean;

/** What the ledger has of a trial, or why its record cannot be read. */
export async function auditedTrial(
  trial: StoredTrial,
  ledger: Ledger,
  specOf: ReturnType<typeof definitionOf>,
  isLeftOut: IsLeftOut,
): Promise<AuditedTrial | string> {
  try {
    const record = readRecord(ledger.blobs.readJson(trial.result ?? ''));
    const body = ledger.outbox.blobOf(trial.key);
    const report = body === undefined || isLeftOut(body) ? undefined : ledger.outbox.body(trial.key);
    const attempts = listAttempts(ledger.records, trial.key);
    return { trial, record, report, attempts, ...(await specOf(trial)) };
  } catch (error) {
    if (error instanceof OffsiteError || error instanceof SyntaxError) return messageOf(error);
    throw error;
  }
}

/** The archive of the workspace has the files that the record says the agent left. */
export async function checkKeptFiles(
  { left, changes }: TrialRecord,
  key: number,
  { workspaces }: Pick<Ledger, 'workspaces'>,
  checks: Checks,
): Promise<void> {
  const kept = workspaces.of(key);
  if (left?.kind !== 'archive' || !changes || kept?.kind !== 'archive' || kept.removedAt !== undefined)
    return;
  const name = kept.name ?? '';
  if (!workspaces.has(name)) return;
  const says = 'the kept workspace has the files of the record';
  try {
    const files = await filesOf(workspaces.read(name), Math.min(kept.byteSize, keptWorkspaces.bytes.archive));
    for (const [index, { path, kind, after }] of changes.entries()) {
      const at = `changes[${index}] ${path}`;
      const found = files.get(path);
      if (kind === 'deleted') checks.same(at, says, undefined, found);
      else if (after?.type !== 'file') checks.same(at, says, true, found !== undefined);
      else if (after.content !== undefined && found !== unread) checks.same(at, says, after.content, found);
      else checks.same(at, says, true, found !== undefined);
    }
  } catch (error) {
    checks.contradicted('left', says, 'an archive', messageOf(error));
  }
}

/** A second name of a file, or a file with holes, whose content is not compared. */
const unread = 'not read';

/** The hash of each file by its path in the workspace; for what is no file, what it is. */
async function filesOf(compressed: ReadStream, byteSize: number): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  const room = new PathRoom();
  const archive = createZstdDecompress();
  // Whoever reads the archive gets the error.
  pipeline(compressed, archive, () => undefined);
  for await (const { header, content } of tarEntries(atMost(byteSize, archive))) {
    const [, path = ''] = /^[^/]*\/(.*?)\/?$/s.exec(nameText(header.name)) ?? [];
    if (!room.take(path)) throw tooManyPaths();
    if (!['0', '7'].includes(header.flag) || header.sparseSize !== undefined) {
      files.set(path, header.flag === '5' || header.flag === '2' ? 'no file' : unread);
      continue;
    }
    const hash = createHash('sha256');
    for await (const chunk of content()) hash.update(chunk);
    files.set(path, hash.digest('hex'));
  }
  return files;
}

/** A small file can be compressed from a huge one, and its record say so. */
async function* atMost(byteSize: number, chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let left = byteSize;
  for await (const chunk of chunks) {
    left -= chunk.length;
    if (left < 0) throw new Error('it is longer than the ledger says');
    yield chunk;
  }
}
