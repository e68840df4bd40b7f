import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { keySigning, type Signing } from '../../src/evidence/envelope.ts';
import { readEvidence } from '../../src/evidence/read-evidence.ts';
import type { Statement } from '../../src/evidence/statement.ts';
import { writeEvidence } from '../../src/evidence/write-evidence.ts';
import { writeExport } from '../../src/export/write-export.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import { fillBatch } from './batch.ts';
import { type Entry, entriesOf, forged, statementIn, withStatement, writeBundle } from './bundle-file.ts';

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
  const batch = ledger.batches.byKey(await fillBatch(ledger));
  const source = {
    ledger,
    redactor: new Redactor([]),
    signing: signings[0] as Signing,
    now: 5,
    env: process.env,
    signal,
  };
  const file = join(folder, 'whole.tar.zst');
  await writeExport(file, (write) => writeEvidence(batch, source, write));
  entries = await entriesOf(file);
  statement = statementIn(entries);
});
afterAll(() => rmSync(folder, { recursive: true }));

async function read(changed: readonly Entry[]) {
  const file = join(folder, 'forged.tar.zst');
  writeBundle(file, changed);
  const trustedKeys = keys.slice(0, 1).map(({ publicKey }) => publicKey);
  const { findings, signature } = await readEvidence(file, { signal, trustedKeys });
  return { signature, found: findings.map(({ kind, trials, message }) => ({ kind, trials, message })) };
}

const first = () => statement.predicate.batch.runs[0]?.trials[0];
const name = 'batch_1/adds/one/0';
const blob = (sha256: string | undefined) => `blobs/${sha256}`;
const copy = () => structuredClone(statement);
const held = { kind: 'ed25519', holds: true, isTrusted: true };

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
    found: [
      {
        kind: 'contradicted',
        trials: [name],
        message: `${record} was changed: its content has another hash`,
      },
    ],
  });
});

test('a workspace that was swapped for another one of its size has another hash', async () => {
  const [one, other] = entries.filter(({ name }) => name.startsWith('workspaces/'));
  const swapped = entries.map((entry) =>
    entry === one ? { ...entry, content: other?.content ?? entry.content } : entry,
  );
  expect((await read(swapped)).found).toMatchObject([{ kind: 'contradicted', trials: [name] }]);
});

test('a content that was taken out is missed, with the trials that need it', async () => {
  const without = entries.filter((entry) => entry.name !== blob(first()?.report?.body));
  expect((await read(without)).found).toMatchObject([
    { kind: 'contradicted', trials: [name], message: expect.stringContaining('is not in the bundle') },
  ]);
});

test('the last content, too', async () => {
  expect((await read(entries.slice(0, -1))).found).toMatchObject([{ kind: 'contradicted' }]);
});

test('a verdict that was changed in the statement breaks the signature, and is not that of the record', async () => {
  const changed = copy();
  const result = changed.predicate.batch.runs[0]?.trials[0]?.result;
  if (result) result.verdict = 'failed';
  const payload = Buffer.from(JSON.stringify(changed)).toString('base64');
  const envelope = JSON.parse(entries[0]?.content.toString() ?? '');
  const content = Buffer.from(JSON.stringify({ ...envelope, payload }));
  expect(await read([{ name: 'statement.json', content }, ...entries.slice(1)])).toMatchObject({
    signature: { holds: false, isTrusted: true },
    found: [{ trials: [name], message: `${name}: the statement says failed, and its record passed` }],
  });
});

test('a record that was edited and signed again is not the one that was reported', async () => {
  const edit = (text: string) => text.replaceAll('"finishedAt":1060000', '"finishedAt":1000001');
  const { found, signature } = await read(
    await forged(entries, first()?.result?.record ?? '', edit, signings[0]),
  );
  expect(signature).toMatchObject(held);
  expect(found).toEqual([
    {
      kind: 'contradicted',
      trials: [name],
      message: expect.stringContaining('its report names another record'),
    },
  ]);
});

test('a statement that somebody else signed again names their key', async () => {
  const changed = copy();
  changed.predicate.signer = signings[1]?.signer;
  expect((await read(await withStatement(entries, changed, signings[1]))).signature).toMatchObject({
    holds: true,
    isTrusted: false,
    keyId: signings[1]?.signer?.keyId,
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

test('a trial that was dropped from the statement is one that the plan has', async () => {
  const changed = copy();
  changed.predicate.batch.runs[1]?.trials.pop();
  const gone = changed.subject.findIndex((subject) => subject.name === 'batch_1/adds/two/1');
  changed.subject.splice(gone, 1);
  const { found } = await read(await withStatement(entries, changed, signings[0]));
  expect(found).toEqual([
    {
      kind: 'contradicted',
      trials: [],
      message: 'the plan has 2 trials of adds on two, and the statement lists 1',
    },
  ]);
});

test('a run that was dropped is one that the plan has', async () => {
  const changed = copy();
  changed.predicate.batch.runs.pop();
  changed.subject = changed.subject.filter((subject) => !subject.name.startsWith('batch_1/sorts/two/'));
  expect((await read(await withStatement(entries, changed, signings[0]))).found).toMatchObject([
    { message: 'the plan has 2 trials of sorts on two, and the statement lists 0' },
  ]);
});

test('the record of another trial in place of its own says whose it is', async () => {
  const changed = copy();
  const [mine, other] = [
    changed.predicate.batch.runs[0]?.trials[0],
    changed.predicate.batch.runs[2]?.trials[1],
  ];
  if (!mine?.result || !other?.result) throw new Error('both have results');
  mine.result = other.result;
  const subject = changed.subject.find((each) => each.name === name);
  if (subject) subject.digest.sha256 = other.result.record;
  const { found } = await read(await withStatement(entries, changed, signings[0]));
  expect(found.map(({ message }) => message)).toEqual([
    `${name}: its record is of the case "Case sorts"`,
    `${name}: its record is of trial 1`,
    expect.stringContaining('its report names another record'),
  ]);
});

test('a workspace that the owner no longer had is missing, and not contradicted', async () => {
  const changed = copy();
  const [gone] = changed.predicate.contents.filter(({ kind }) => kind === 'workspace');
  changed.predicate.contents = changed.predicate.contents.filter((content) => content !== gone);
  const rest = entries.filter((entry) => entry.name !== `workspaces/${gone?.sha256}`);
  expect((await read(await withStatement(rest, changed, signings[0]))).found).toEqual([
    {
      kind: 'missing',
      trials: [name],
      message: `${name}: the workspace that it left was not there when the bundle was written`,
    },
  ]);
});

test('a plan that the owner no longer had is missing: nobody would notice a trial that was left out', async () => {
  const changed = copy();
  const { batch } = changed.predicate;
  changed.predicate.contents = changed.predicate.contents.filter(({ sha256 }) => sha256 !== batch.plan);
  const rest = entries.filter((entry) => entry.name !== blob(batch.plan));
  const { found } = await read(await withStatement(rest, changed, signings[0]));
  expect(found).toEqual([
    { kind: 'missing', trials: [], message: expect.stringContaining('its plan is not there') },
  ]);
});

test('a report that the owner no longer had is missing', async () => {
  const changed = copy();
  const body = first()?.report?.body;
  changed.predicate.contents = changed.predicate.contents.filter(({ sha256 }) => sha256 !== body);
  const rest = entries.filter((entry) => entry.name !== blob(body));
  const { found } = await read(await withStatement(rest, changed, signings[0]));
  expect(found).toMatchObject([
    { kind: 'missing', trials: [name], message: expect.stringContaining('its report') },
  ]);
});
