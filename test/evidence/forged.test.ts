import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { keySigning, type Signing } from '../../src/evidence/envelope.ts';
import { readEvidence } from '../../src/evidence/read-evidence.ts';
import type { Statement } from '../../src/evidence/statement.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { exportEvidence, fillBatch } from './batch.ts';
import { type Entry, entriesOf, statementIn, withStatement, writeBundle } from './bundle-file.ts';

/** What a dishonest owner, or somebody on the way, does to evidence, and how a reader sees it. */

let folder: string;
let entries: Entry[];
let statement: Statement;
const { signal } = new AbortController();
const signings: Signing[] = [];
const keys = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'offsite-forged-'));
  for (const [index, { privateKey }] of keys.entries()) {
    const file = join(folder, `key-${index}.pem`);
    writeFileSync(file, privateKey.export({ format: 'pem', type: 'pkcs8' }));
    signings.push(keySigning(file));
  }
  using ledger = new Ledger(join(folder, 'data'), systemClock);
  const file = join(folder, 'whole.tar.zst');
  await exportEvidence(ledger, await fillBatch(ledger), file, { signing: signings[0] as Signing });
  entries = await entriesOf(file);
  statement = statementIn(entries);
});
afterAll(() => rmSync(folder, { recursive: true }));

async function read(changed: readonly Entry[]) {
  const file = join(folder, 'forged.tar.zst');
  writeBundle(file, changed);
  const trustedKeys = keys.slice(0, 1).map(({ publicKey }) => publicKey);
  const { gone, signature } = await readEvidence(file, { signal, trustedKeys });
  return { signature, found: [...gone].map(([entry, what]) => `${entry} ${what}`) };
}

const first = () => statement.predicate.batch.runs[0]?.trials[0];
const blob = (sha256: string | undefined) => `blobs/${sha256}`;
const copy = () => structuredClone(statement);
const held = { of: 'key', holds: true, isTrusted: true };

test('nothing is found in evidence that nobody changed', async () => {
  expect(await read(entries)).toMatchObject({ found: [], signature: held });
});

test('a record that was edited has another hash', async () => {
  const record = blob(first()?.result?.record);
  const edited = entries.map((entry) =>
    entry.name === record
      ? { ...entry, content: Buffer.from(entry.content.toString().replace('passed', 'failed')) }
      : entry,
  );
  expect(await read(edited)).toMatchObject({
    signature: held,
    found: [`${record} was changed: its content has another hash`],
  });
});

test('a workspace that was swapped for another one of its size has another hash', async () => {
  const [one, other] = entries.filter(({ name }) => name.startsWith('workspaces/'));
  const swapped = entries.map((entry) =>
    entry === one ? { ...entry, content: other?.content ?? entry.content } : entry,
  );
  expect((await read(swapped)).found).toEqual([
    expect.stringMatching(/^workspaces\/.* was changed: its content has another hash$/),
  ]);
});

test('a content that was taken out is missed', async () => {
  const report = blob(first()?.report?.body);
  const without = entries.filter((entry) => entry.name !== report);
  expect((await read(without)).found).toEqual([`${report} is not in the bundle`]);
});

test('the last content, too', async () => {
  expect((await read(entries.slice(0, -1))).found).toEqual([`${entries.at(-1)?.name} is not in the bundle`]);
});

test('a statement that somebody else signed again names their key', async () => {
  const changed = copy();
  changed.predicate.signer = signings[1]?.signer;
  expect((await read(await withStatement(entries, changed, signings[1]))).signature).toMatchObject({
    holds: true,
    isTrusted: false,
    by: signings[1]?.signer?.keyId,
  });
});

test('a statement with the name of one key and the signature of another does not hold', async () => {
  expect((await read(await withStatement(entries, copy(), signings[1]))).signature).toMatchObject({
    holds: false,
  });
});

test('a statement whose signature was taken away, but not its signer, does not hold', async () => {
  expect((await read(await withStatement(entries, copy()))).signature).toMatchObject({ holds: false });
});

test('a statement with another verdict breaks the signature', async () => {
  const changed = copy();
  const result = changed.predicate.batch.runs[0]?.trials[0]?.result;
  if (result) result.verdict = 'failed';
  const payload = Buffer.from(JSON.stringify(changed)).toString('base64');
  const envelope = JSON.parse(entries[0]?.content.toString() ?? '');
  const content = Buffer.from(JSON.stringify({ ...envelope, payload }));
  expect(await read([{ name: 'statement.json', content }, ...entries.slice(1)])).toMatchObject({
    signature: { holds: false, isTrusted: true },
  });
});
