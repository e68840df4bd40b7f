import { createHash } from 'node:crypto';
import { closeSync, createReadStream, openSync, readFileSync, readSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import { constants, createZstdCompress } from 'node:zlib';
import { readPlan } from '../agent/batch-run.ts';
import { infrastructureError, inputError, type OffsiteError } from '../base/offsite-error.ts';
import { parseForeignJson } from '../base/parse-json.ts';
import { versionOf } from '../base/version.ts';
import { evidenceBundles } from '../bounds/anyone.ts';
import type { NewEntry } from '../engine/archive/entries.ts';
import { tarArchive } from '../engine/archive/write-archive.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import { type CarriedBatch, carriedBatch } from '../ledger/carried-batch.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Redactor } from '../redaction/redactor.ts';
import type { SuitePlan } from '../suite/plan.ts';
import type { Signing } from './envelope.ts';
import { statementEntry } from './read-evidence.ts';
import {
  type Content,
  commitsOf,
  entryOf,
  hasKeyIn,
  namedTrials,
  packOf,
  predicateType,
  type Statement,
  statementType,
  subjectsOf,
} from './statement.ts';

/** Images of sandboxes that go into a bundle: a file that the engine has saved. */
export interface SavedImages {
  imageIds: string[];
  file: string;
}

export interface EvidenceSource {
  ledger: Ledger;
  /** Knows the keys that no bundle may hold. */
  redactor: Redactor;
  signing: Signing;
  /** For git. */
  env: NodeJS.ProcessEnv;
  images?: SavedImages | undefined;
  /** Epoch milliseconds. */
  now: number;
  signal: AbortSignal;
}

export interface WrittenEvidence {
  statement: Statement;
  /** The sha256 of the statement's bytes. */
  digest: string;
  /** What is not in the bundle although the ledger names it, one line each. */
  leftOut: string[];
}

/**
 * Writes a batch as a bundle, part by part: a tar archive, compressed with zstd. Reads each content twice:
 * first to compare its hash and to look for keys, because the statement comes first and lists what follows.
 * Memory depends on the number of trials and contents, not on their size. Throws the input errors
 * `EVIDENCE_HAS_KEY`, if a key of this machine is in a record or another document, and `EVIDENCE_TOO_LARGE`.
 */
export async function writeEvidence(
  { key }: StoredBatch,
  source: EvidenceSource,
  write: (part: Uint8Array) => Promise<void>,
): Promise<WrittenEvidence> {
  const { redactor, signing, now, signal } = source;
  const carried = carriedBatch(source.ledger, key);
  const plan = planIn(carried, source.ledger);
  const batch = withPlanned(carried, plan);
  const { contents, files, leftOut } = await collected(batch, plan, source);
  const predicate: Statement['predicate'] = {
    offsite: versionOf(),
    exportedAt: now,
    machine: { os: process.platform, arch: process.arch, node: process.version },
    batch,
    contents,
    ...(signing.signer && { signer: signing.signer }),
  };
  const statement: Statement = { _type: statementType, subject: subjectsOf(batch), predicateType, predicate };
  // Texts of attempts and details of runs are in no blob that was searched.
  const payload = Buffer.from(redactor.json(statement));
  const first = Buffer.from(JSON.stringify(await signing.wrap(payload)));
  requireBounds(contents, first.length);

  async function* entries(): AsyncGenerator<NewEntry> {
    const same = { mode: 0o600, modifiedAt: now };
    yield { ...same, path: statementEntry, content: first };
    for (const content of contents) {
      signal.throwIfAborted();
      const path = entryOf(content);
      const bytes = pieces(files.get(path) ?? '', content.byteSize);
      yield { ...same, path, content: { size: content.byteSize, bytes } };
    }
  }
  const compressed = createZstdCompress({
    chunkSize: evidenceBundles.bytes.piece,
    params: { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_checksumFlag]: 1 },
  });
  const archive = tarArchive(entries());
  archive.on('error', (error) => compressed.destroy(error));
  for await (const part of archive.pipe(compressed)) await write(part as Buffer);
  return { statement, digest: createHash('sha256').update(payload).digest('hex'), leftOut };
}

function planIn(batch: CarriedBatch, { blobs }: Ledger): SuitePlan | undefined {
  const stored = batch.plan === undefined ? undefined : blobs.tryRead(batch.plan);
  return stored && readPlan(parseForeignJson(stored.toString()));
}

/** With the trials of planned runs that the ledger does not have, because their setup was never pulled. */
function withPlanned(batch: CarriedBatch, plan: SuitePlan | undefined): CarriedBatch {
  if (!plan) return batch;
  const { trials } = plan;
  const planned = Array.from({ length: trials }, (_, ordinal) => ({ ordinal, attempts: [], gradings: [] }));
  const runs = batch.runs.map((run) =>
    run.origin === 'planned' && run.trials.length === 0 ? { ...run, trials: planned } : run,
  );
  return { ...batch, runs };
}

interface Collected {
  contents: Content[];
  /** The file of each content, by the name of its entry. */
  files: Map<string, string>;
  leftOut: string[];
}

/** Everything that a batch names and the data folder has, searched for keys. */
async function collected(
  batch: CarriedBatch,
  plan: SuitePlan | undefined,
  { ledger, redactor, images, env, signal }: EvidenceSource,
): Promise<Collected> {
  const { blobs, workspaces } = ledger;
  const found: Collected = { contents: [], files: new Map(), leftOut: [] };
  /** Adds a file under the hash that it has, or that it is known to have. */
  async function add(
    { sha256: known, ...kind }: Omit<Content, 'sha256' | 'byteSize'> & { sha256?: string },
    file: string,
    of: string,
    byteSize?: number,
  ): Promise<void> {
    if (known !== undefined && found.files.has(entryOf({ ...kind, sha256: known }))) return;
    signal.throwIfAborted();
    const size = byteSize ?? (await stat(file)).size;
    const searched = await searchedFile(file, size, redactor);
    const content = { ...kind, sha256: known ?? searched.sha256, byteSize: size };
    const entry = entryOf(content);
    found.files.set(entry, file);
    if (searched.sha256 !== content.sha256) found.leftOut.push(`${entry} (${of}): its content is damaged`);
    else if (searched.hasKey) found.leftOut.push(`${entry} (${of}): a key of this machine is in it`);
    else found.contents.push(content);
  }
  async function addBlob(sha256: string, of: string): Promise<void> {
    const byteSize = blobs.stat(sha256)?.byteSize;
    if (byteSize !== undefined) await add({ kind: 'blob', sha256 }, blobs.pathOf(sha256), of, byteSize);
  }
  async function addDocument(sha256: string | undefined, of: string): Promise<string> {
    const text = sha256 === undefined ? '' : blobs.tryRead(sha256)?.toString('utf8');
    if (sha256 === undefined || text === undefined) {
      if (sha256 !== undefined) found.leftOut.push(`blobs/${sha256} (${of}): it is missing or damaged`);
      return '';
    }
    if (redactor.find(text)) throw hasKey(of);
    await addBlob(sha256, of);
    return text;
  }
  async function addRecord(record: string | undefined, of: string): Promise<void> {
    const text = await addDocument(record, of);
    // Records also name images and other things that are no contents.
    for (const [sha256] of text.matchAll(/[0-9a-f]{64}/g)) {
      await addBlob(sha256, of);
      const byteSize = workspaces.sizeOf(sha256);
      if (byteSize !== undefined)
        await add({ kind: 'workspace', sha256 }, workspaces.pathOf(sha256), of, byteSize);
    }
  }

  await addDocument(batch.plan, 'the plan');
  for (const { setup, id } of batch.runs) await addDocument(setup, `the setup of run ${id}`);
  for (const { name, trial } of namedTrials(batch)) {
    const { result, report, attempts, gradings } = trial;
    await addRecord(result?.record, `the record of ${name}`);
    await addDocument(report?.body, `the report of ${name}`);
    for (const { number, result } of attempts) await addRecord(result, `attempt ${number} of ${name}`);
    for (const { record } of gradings) await addRecord(record, `a later grading of ${name}`);
  }
  for (const [commit, repository] of plan ? commitsOf(plan) : []) {
    const file = packOf(repository);
    if (file === undefined) found.leftOut.push(`the commit ${commit}: it is no longer kept`);
    else if (await hasKeyIn(commit, repository, { redactor, env, signal }))
      found.leftOut.push(`the commit ${commit}: a key of this machine is in it`);
    else await add({ kind: 'commit', commit }, file, 'what a workspace begins with');
  }
  if (images) await add({ kind: 'image', imageIds: images.imageIds }, images.file, 'the images');
  return found;
}

/**
 * The hash of a file, and whether a key is in it. Throws if the file has another size than given. All files
 * are read into one buffer: to give back a new one for each takes longer than to search it.
 */
async function searchedFile(
  file: string,
  byteSize: number,
  redactor: Redactor,
): Promise<{ sha256: string; hasKey: boolean }> {
  const hash = createHash('sha256');
  const search = redactor.search();
  let hasKey = false;
  let read = 0;
  const handle = openSync(file, 'r');
  try {
    for (;;) {
      const size = readSync(handle, room);
      if (size === 0) break;
      const piece = room.subarray(0, size);
      hash.update(piece);
      hasKey ||= search.push(piece);
      read += size;
      // Others get their turn, so that the user can end it.
      if (read % (64 * room.length) === 0) await setImmediate();
    }
  } finally {
    closeSync(handle);
  }
  requireSize(file, read, byteSize);
  return { sha256: hash.digest('hex'), hasKey: hasKey || search.end() };
}

const room = Buffer.allocUnsafe(evidenceBundles.bytes.piece);

/** A file piece by piece. Throws if it does not have the size that the statement says. */
async function* pieces(file: string, byteSize: number): AsyncGenerator<Buffer> {
  let read = 0;
  // A stream for each of thousands of small files would take longer than reading them.
  const source: Iterable<Buffer> | AsyncIterable<Buffer> =
    byteSize <= evidenceBundles.bytes.piece
      ? [readFileSync(file)]
      : createReadStream(file, { highWaterMark: evidenceBundles.bytes.piece });
  for await (const piece of source) {
    read += piece.length;
    yield piece;
  }
  requireSize(file, read, byteSize);
}

function requireSize(file: string, read: number, byteSize: number): void {
  if (read === byteSize) return;
  throw infrastructureError('EVIDENCE_CHANGED', `${file} has ${read} bytes now, and had ${byteSize}`, {
    hint: 'Export again when nothing else uses the data folder.',
  });
}

function hasKey(of: string): OffsiteError {
  return inputError('EVIDENCE_HAS_KEY', `a key of this machine is in ${of}, and no evidence may hold it`, {
    hint: 'It was stored before Offsite knew the key. Change the key at its provider, and run the batch again.',
  });
}

/** A bundle that no reader takes is not written. */
function requireBounds(contents: readonly Content[], statement: number): void {
  const all = contents.reduce((sum, { byteSize }) => sum + byteSize, 0);
  const fits =
    statement <= evidenceBundles.bytes.statement &&
    contents.length <= evidenceBundles.count.contents &&
    all <= evidenceBundles.bytes.all;
  if (fits) return;
  throw inputError(
    'EVIDENCE_TOO_LARGE',
    `the batch is too large for evidence: ${contents.length} contents with ${all} bytes, and a statement of ${statement}`,
    { hint: 'Run its suite in smaller batches.' },
  );
}
