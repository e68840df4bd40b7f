import { createHash, type KeyObject } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { constants, createZstdDecompress, zstdCompressSync } from 'node:zlib';
import { readPlan } from '../agent/batch-run.ts';
import { inputError, messageOf, OffsiteError } from '../base/offsite-error.ts';
import { parseForeignJson } from '../base/parse-json.ts';
import { evidenceBundles } from '../bounds/anyone.ts';
import { ByteReader, type TarEntry, tarEntries } from '../engine/archive/tar-entries.ts';
import { namedBlobs } from '../record/named-blobs.ts';
import { readRecord } from '../record/read-record.ts';
import { type EvidenceSignature, signatureOf, unwrapped } from './envelope.ts';
import { type Content, entryOf, namedTrials, Statement, subjectsOf } from './statement.ts';

/** The name of a bundle's first entry. */
export const statementEntry = 'statement.json';

export interface VerifiedEvidence {
  statement: Statement;
  /** The sha256 of the statement's bytes. */
  digest: string;
  /** Undefined if no key signed it: see `sigstore`. */
  signature: EvidenceSignature | undefined;
  /** The bundle of Sigstore that signs it, which is not checked: that may need the network. */
  sigstore: unknown;
  /** What happened to contents that the statement lists, by their entries. Empty if all are there. */
  gone: ReadonlyMap<string, string>;
  /** Bytes of the file. */
  byteSize: number;
}

export interface EvidenceOptions {
  signal: AbortSignal;
  /** The public keys of owners whom the reader knows. */
  trustedKeys?: readonly KeyObject[] | undefined;
}

/** Takes the contents of a bundle as they are read. Throws `EVIDENCE_NOT_WRITTEN` if it cannot. */
export interface ContentSink {
  /** Called once, when the statement has been read and fits the bounds. */
  begin(statement: Statement): void;
  open(content: Content): OpenContent;
}

interface OpenContent {
  write(piece: Buffer): void;
  /** @param isWhole whether it has the hash of its name; if not, it must not be kept */
  close(isWhole: boolean): void;
}

/**
 * Reads a bundle once, from its beginning to its end: the hashes of all contents, the form of its documents,
 * and its signature. Whether they agree with each other, an audit says. Memory depends on the number of
 * trials and contents, not on their size. Throws the input error `EVIDENCE_REFUSED`, which names the entry,
 * for a file that is no bundle or breaks a bound.
 */
export async function readEvidence(
  file: string,
  { signal, trustedKeys }: EvidenceOptions,
  sink?: ContentSink,
): Promise<VerifiedEvidence> {
  let entry = 'its beginning';
  const refuse = (why: string, cause?: unknown) =>
    inputError('EVIDENCE_REFUSED', `${file} is not evidence that can be read: ${entry}: ${why}`, {
      hint: 'Ask for the file again; `offsite export --evidence` writes one.',
      cause,
    });
  const source = createReadStream(file, { highWaterMark: evidenceBundles.bytes.piece });
  const expanded = createZstdDecompress({ chunkSize: evidenceBundles.bytes.piece });
  source.on('error', (error) => expanded.destroy(error));
  // Whoever reads gets the error. A damaged file may fail before anybody reads, or when nobody does any more.
  expanded.on('error', () => undefined);
  source.pipe(expanded);
  try {
    signal.throwIfAborted();
    const { size: byteSize } = await stat(file);
    const bytes = new ByteReader(expanded);
    const entries = tarEntries(bytes);
    entry = statementEntry;
    const first = (await entries.next()).value;
    if (!first || nameOf(first) !== statementEntry) throw refuse('it is not the first entry');
    requireFile(first, refuse);
    if (first.header.size > evidenceBundles.bytes.statement)
      throw refuse(`it has more than ${evidenceBundles.bytes.statement} bytes`);
    const wrapped = unwrapped(parseForeignJson((await whole(first)).toString('utf8')));
    const payload = Buffer.from(wrapped.envelope.payload, 'base64');
    const statement = readStatement(payload, refuse);
    const { contents } = statement.predicate;
    requireRoom(contents, byteSize, refuse);
    sink?.begin(statement);

    const documents = documentsOf(statement);
    /** Contents that records name, for each use of the record. */
    let named = 0;
    const gone = new Map<string, string>();
    const drop = (from: number, to?: number) => {
      for (const dropped of contents.slice(from, to)) gone.set(entryOf(dropped), 'is not in the bundle');
    };
    const places = new Map(contents.map((content, index) => [entryOf(content), index]));
    let next = 0;
    for await (const found of entries) {
      signal.throwIfAborted();
      entry = printable(nameOf(found));
      const place = places.get(nameOf(found));
      requireFile(found, refuse);
      if (place === undefined) throw refuse('the statement does not list it');
      if (place < next) throw refuse('it comes twice, or in another order than in the statement');
      drop(next, place);
      next = place + 1;
      const content = contents[place] as Content;
      if (found.header.size !== content.byteSize)
        throw refuse(`it has ${found.header.size} bytes, and the statement says ${content.byteSize}`);
      const open = sink?.open(content);
      const roles = content.kind === 'blob' ? documents.get(content.sha256) : undefined;
      const read = await readContent(found, content, roles !== undefined, open);
      open?.close(read.isWhole);
      if (!read.isWhole) gone.set(entryOf(content), 'was changed: its content has another hash');
      else if (roles && read.text !== undefined) named += checkDocument(read.text, roles);
      const most = evidenceBundles.count.names;
      if (named > most) throw refuse(`with it, records name more than ${most} contents`);
    }
    drop(next);
    entry = 'its end';
    if (!(await bytes.endsWithZeros(recordBytes)) || !(await isOneFrame(file)))
      throw refuse('something follows');
    return {
      statement,
      digest: createHash('sha256').update(payload).digest('hex'),
      signature: wrapped.sigstore
        ? undefined
        : signatureOf(wrapped.envelope, payload, statement, trustedKeys),
      sigstore: wrapped.sigstore,
      gone,
      byteSize,
    };
  } catch (error) {
    signal.throwIfAborted();
    const { code } = error as NodeJS.ErrnoException;
    // A failure of the folder that contents are written to is no fault of the bundle.
    if (error instanceof OffsiteError && /^EVIDENCE_(REFUSED|NOT_WRITTEN)$/.test(error.code)) throw error;
    if (code === 'ENOENT' || code === 'EACCES' || code === 'EISDIR')
      throw inputError('EVIDENCE_UNREADABLE', `cannot read ${file}: ${messageOf(error)}`, {
        cause: error,
        hint: 'Name a file that `offsite export --evidence` wrote.',
      });
    if (code === 'ZSTD_error_prefix_unknown')
      throw inputError(
        'EVIDENCE_REFUSED',
        `${file} is not evidence that can be read: it is not compressed with zstd`,
        { hint: 'Name the file that `offsite export --evidence` wrote.', cause: error },
      );
    throw refuse(messageOf(error), error);
  } finally {
    source.destroy();
    expanded.destroy();
  }
}

/** What others read a document of a bundle as, once for each time that the statement names it. */
type Roles = ('plan' | 'setup' | 'record' | 'report')[];

/** The plan, setups, records and reports of a bundle, by their hashes. */
function documentsOf({ predicate: { batch } }: Statement): Map<string, Roles> {
  const documents = new Map<string, Roles>();
  const add = (role: Roles[number], ...named: (string | undefined)[]) => {
    for (const sha256 of named) {
      if (sha256 === undefined) continue;
      const roles = documents.get(sha256) ?? [];
      documents.set(sha256, roles);
      roles.push(role);
    }
  };
  add('plan', batch.plan);
  for (const { setup, trials } of batch.runs) {
    add('setup', setup);
    for (const { result, report, attempts, gradings } of trials) {
      add('report', report?.body);
      add(
        'record',
        result?.record,
        ...attempts.map((one) => one.result),
        ...gradings.map((one) => one.record),
      );
    }
  }
  return documents;
}

/** Throws if a document is not what the statement takes it for. Returns how many contents it names. */
function checkDocument(text: string, roles: Roles): number {
  const json = parseForeignJson(text);
  const isObject = typeof json === 'object' && json !== null;
  const other = roles.find((role) => role !== 'record');
  if (other && !isObject) throw new Error(`it is no ${other}`);
  if (isObject && roles.includes('plan')) requirePlan(json);
  return roles.includes('record') ? namedBlobs(readRecord(json)).length * roles.length : 0;
}

function requirePlan(json: object): void {
  try {
    const { trials, cases, variants } = readPlan(json);
    const ids = cases.map(({ request }) => request.id);
    if (!Number.isSafeInteger(trials) || trials < 1)
      throw new Error(`it asks for ${JSON.stringify(trials)} trials of each case`);
    if (isTwice(ids)) throw new Error('it has a case twice');
    if (!Array.isArray(variants)) throw new Error('it has no variants');
  } catch (error) {
    throw new Error(`it is no plan: ${messageOf(error)}`);
  }
}

/** Archives are filled up to a whole record of tar. */
const recordBytes = 20 * 512;

type Refuse = (why: string, cause?: unknown) => OffsiteError;

function nameOf({ header }: TarEntry): string {
  return header.name.toString('latin1');
}

/** A name of an entry, in a message: it can hold anything. */
function printable(name: string): string {
  return JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}…` : name);
}

const kinds: Readonly<Record<string, string>> = {
  '1': 'a hard link',
  '2': 'a link',
  '3': 'a device',
  '4': 'a device',
  '5': 'a folder',
  '6': 'a pipe',
};

function requireFile({ header: { flag, size, sparseSize } }: TarEntry, refuse: Refuse): void {
  if (flag !== '0') throw refuse(`it is ${kinds[flag] ?? `of the kind ${JSON.stringify(flag)}`}, not a file`);
  if (sparseSize !== undefined) throw refuse('it is a file with holes');
  if (!Number.isSafeInteger(size) || size < 0) throw refuse(`its size is ${size}`);
}

function readStatement(payload: Buffer, refuse: Refuse): Statement {
  const parsed = Statement.safeParse(parseForeignJson(payload.toString('utf8')));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw refuse(`${issue?.path.join('.') || 'the statement'}: ${issue?.message}`);
  }
  const statement = parsed.data;
  if (isTwice(statement.predicate.contents.map(entryOf))) throw refuse('it lists a content twice');
  const { batch } = statement.predicate;
  if (isTwice(batch.runs.map(({ id }) => id))) throw refuse('it lists a run twice');
  const subjects = subjectsOf(batch);
  if (JSON.stringify(subjects) !== JSON.stringify(statement.subject))
    throw refuse('its subjects are not the trials of its batch that have a result');
  const trials = namedTrials(batch);
  if (isTwice(trials.map(({ name }) => name))) throw refuse('it lists a trial twice');
  if (trials.some(({ trial }) => isTwice(trial.attempts.map(({ number }) => number))))
    throw refuse('it lists an attempt twice');
  return statement;
}

function isTwice(names: readonly unknown[]): boolean {
  return new Set(names).size < names.length;
}

/** The statement says how much will follow, so a bundle that would expand too much is refused before. */
function requireRoom(contents: readonly Content[], byteSize: number, refuse: Refuse): void {
  const most = evidenceBundles.count.contents;
  if (contents.length > most) throw refuse(`it lists more than ${most} contents`);
  const all = contents.reduce((sum, content) => sum + content.byteSize, 0);
  const mostBytes = evidenceBundles.bytes.all;
  if (all > mostBytes) throw refuse(`it lists ${all} bytes, and at most ${mostBytes} are read`);
  const { ratio } = evidenceBundles.count;
  if (all > byteSize * evidenceBundles.count.ratio + evidenceBundles.bytes.small)
    throw refuse(`it lists ${all} bytes, more than ${ratio} times those of the file`);
}

async function whole({ content }: TarEntry): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(content()));
}

async function readContent(
  entry: TarEntry,
  { sha256, byteSize }: Content,
  isDocument: boolean,
  open: OpenContent | undefined,
): Promise<{ isWhole: boolean; text: string | undefined }> {
  if (isDocument && byteSize > evidenceBundles.bytes.document)
    throw new Error(`it has ${byteSize} bytes, and at most ${evidenceBundles.bytes.document} are read`);
  const hash = createHash('sha256');
  const pieces: Buffer[] = [];
  for await (const piece of entry.content()) {
    hash.update(piece);
    open?.write(piece);
    if (isDocument) pieces.push(piece);
  }
  const isWhole = hash.digest('hex') === sha256;
  return { isWhole, text: isDocument && isWhole ? Buffer.concat(pieces).toString('utf8') : undefined };
}

/**
 * Whether a file has nothing after the frame of zstd that it begins with (RFC 8878, 3.1.1), as its headers
 * say. Node says nothing of what follows that frame, or goes on to it, or begins behind what zstd skips: that
 * depends on where its buffers end. The content must be known to be whole.
 */
async function isOneFrame(file: string): Promise<boolean> {
  await using handle = await open(file);
  const end = await frameBytes(handle);
  const rest = Buffer.alloc(emptyFrame.length + 1);
  const { bytesRead } = await handle.read(rest, 0, rest.length, end);
  return bytesRead === 0 || rest.subarray(0, bytesRead).equals(emptyFrame);
}

/** What Node writes behind the content if the content ended before the stream did. */
const emptyFrame = zstdCompressSync('', { params: { [constants.ZSTD_c_checksumFlag]: 1 } });

async function frameBytes(handle: FileHandle): Promise<number> {
  const header = Buffer.alloc(headerBytes);
  await handle.read(header, 0, headerBytes, 0);
  if (header.readUInt32LE() !== frameMagic)
    throw new Error('the file does not begin with the compressed archive');
  const descriptor = header.readUInt8(magicBytes);
  const isSingle = (descriptor & 0b10_0000) !== 0;
  const sizeBytes = descriptor < 0b100_0000 ? Number(isSingle) : 1 << (descriptor >> 6);
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 0b11] ?? 0;
  let at = magicBytes + 1 + (isSingle ? 0 : 1) + dictionaryBytes + sizeBytes;
  for (let isLast = false; !isLast; ) {
    const { bytesRead } = await handle.read(header, 0, blockHeaderBytes, at);
    if (bytesRead < blockHeaderBytes) throw new Error('its last block is missing');
    const block = header.readUIntLE(0, blockHeaderBytes);
    isLast = (block & 1) === 1;
    const isRepeated = ((block >> 1) & 0b11) === 1;
    at += blockHeaderBytes + (isRepeated ? 1 : block >> 3);
  }
  const hasChecksum = (descriptor & 0b100) !== 0;
  return at + (hasChecksum ? 4 : 0);
}

const frameMagic = 0xfd2fb528;
const magicBytes = 4;
/** Of the longest header of a frame, without its magic number 14. */
const headerBytes = 18;
const blockHeaderBytes = 3;
