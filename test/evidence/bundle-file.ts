import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { type TarHeader, tarEntries } from '../../src/engine/archive/tar-entries.ts';
import { archiveEnd, tarHeader } from '../../src/engine/archive/write-archive.ts';
import { type Signing, unsigned } from '../../src/evidence/envelope.ts';
import { entryOf, type Statement, subjectsOf } from '../../src/evidence/statement.ts';

/** An entry of a bundle, as a test changes it. */
export interface Entry {
  name: string;
  content: Buffer;
  header?: Partial<TarHeader>;
}

/** The entries of a bundle. */
export async function entriesOf(file: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const { header, content } of tarEntries(stream(zstdDecompressSync(readFileSync(file))))) {
    const pieces: Buffer[] = [];
    for await (const piece of content()) pieces.push(piece);
    entries.push({ name: header.name.toString(), content: Buffer.concat(pieces) });
  }
  return entries;
}

async function* stream(content: Buffer): AsyncGenerator<Buffer> {
  yield content;
}

export function tarOf(entries: readonly Entry[]): Buffer {
  return Buffer.concat([
    ...entries.flatMap(({ name, content, header = {} }) => {
      const plain = { flag: '0', mode: 0o600, uid: 0, gid: 0, modifiedAt: 0, size: content.length };
      const names = { name: Buffer.from(name), linkName: Buffer.alloc(0) };
      const padding = Buffer.alloc((512 - (content.length % 512)) % 512);
      return [tarHeader({ ...plain, ...names, ...header }), content, padding];
    }),
    archiveEnd,
  ]);
}

export function writeBundle(file: string, entries: readonly Entry[]): void {
  writeFileSync(file, zstdCompressSync(tarOf(entries)));
}

export function statementIn([first]: readonly Entry[]): Statement {
  const wrapped = JSON.parse(first?.content.toString() ?? '');
  const { payload } = wrapped.dsseEnvelope ?? wrapped;
  return JSON.parse(Buffer.from(payload, 'base64').toString());
}

/** The bundle with another statement. */
export async function withStatement(
  [, ...contents]: readonly Entry[],
  statement: unknown,
  signing: Signing = unsigned,
): Promise<Entry[]> {
  const wrapped = await signing.wrap(Buffer.from(JSON.stringify(statement)));
  return [{ name: 'statement.json', content: Buffer.from(JSON.stringify(wrapped)) }, ...contents];
}

/**
 * The bundle as an owner would forge it who can write a new statement: a blob is replaced, and everything that
 * names it names the new one.
 */
export async function forged(
  entries: readonly Entry[],
  sha256: string,
  change: (text: string) => string,
  signing?: Signing,
): Promise<Entry[]> {
  const old = entries.find(({ name }) => name === `blobs/${sha256}`);
  if (!old) throw new Error(`there is no blob ${sha256}`);
  const content = Buffer.from(change(old.content.toString()));
  const now = createHash('sha256').update(content).digest('hex');
  const text = JSON.stringify(statementIn(entries)).replaceAll(sha256, now);
  const statement = JSON.parse(text) as Statement;
  const { contents, batch } = statement.predicate;
  for (const each of contents) if (each.sha256 === now) each.byteSize = content.length;
  statement.subject = subjectsOf(batch);
  const others = entries.map((entry) =>
    entry === old ? { name: entryOf({ kind: 'blob', sha256: now }), content } : entry,
  );
  return withStatement(others, statement, signing);
}
