import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { evidenceBundles } from '../../src/bounds/anyone.ts';
import { openEvidence } from '../../src/evidence/open-evidence.ts';
import { readEvidence } from '../../src/evidence/read-evidence.ts';
import { subjectsOf } from '../../src/evidence/statement.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { exportEvidence, fillBatch } from './batch.ts';
import {
  type Entry,
  entriesOf,
  forged,
  statementIn,
  tarOf,
  withStatement,
  writeBundle,
} from './bundle-file.ts';

let folder: string;
let whole: string;
let entries: Entry[];
const { signal } = new AbortController();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'offsite-hostile-'));
  whole = join(folder, 'whole.tar.zst');
  using ledger = new Ledger(join(folder, 'data'), systemClock);
  await exportEvidence(ledger, await fillBatch(ledger), whole);
  entries = await entriesOf(whole);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Where a hostile bundle is opened: all that it can reach is looked at afterwards. */
const place = () => join(folder, 'place');
const file = () => join(folder, 'hostile.tar.zst');
afterEach(() => rmSync(place(), { recursive: true, force: true }));

async function open(content?: Buffer) {
  if (content) writeFileSync(file(), content);
  return openEvidence(file(), join(place(), 'inner', 'opened'), { signal, clock: systemClock });
}

/** Refused with this, and nothing is left of it anywhere. */
async function refused(why: RegExp | string) {
  const before = readdirSync(folder);
  await expect(open()).rejects.toMatchObject({
    code: 'EVIDENCE_REFUSED',
    message: expect.stringMatching(why),
  });
  expect(readdirSync(folder).filter((name) => !before.includes(name))).toEqual(['place']);
  expect(readdirSync(place(), { recursive: true })).toEqual(['inner']);
}

const [at, content] = [3, Buffer.from('x')];
const put = (entry: Entry) => [...entries.slice(0, at), entry, ...entries.slice(at)];
const links = { linkName: Buffer.from('/etc/passwd'), size: 0 };

test.each<[string, () => Entry[], RegExp]>([
  [
    'a path out of the folder',
    () => put({ name: '../../escaped', content }),
    /"..\/..\/escaped": .*not list it/,
  ],
  ['a name that ends with NUL', () => put({ name: `${entries[1]?.name}\0`, content }), /not list it/],
  [
    'a link',
    () => put({ name: 'blobs/link', content: Buffer.alloc(0), header: { flag: '2', ...links } }),
    /a link/,
  ],
  ['an unknown kind', () => put({ name: 'x', content, header: { flag: 'Q' } }), /of the kind "Q"/],
  ['an entry that comes twice', () => put(entries[2] as Entry), /comes twice/],
  ['a content with one byte more', () => longer(1), /and the statement says/],
  ['no statement', () => entries.slice(1), /not the first entry/],
  [
    'a file with holes',
    () => put({ ...(entries[3] as Entry), header: { sparseSize: 2 ** 40 } }),
    /a file with holes/,
  ],
  ['a name of five megabytes', () => put({ name: 'a'.repeat(5 * 2 ** 20), content }), /a name without end/],
])('%s is refused, and the entry is named', async (_, change, why) => {
  writeBundle(file(), change());
  await refused(why);
});

function longer(by: number): Entry[] {
  const [first, second, ...rest] = entries;
  if (!first || !second) throw new Error('there are two');
  return [first, { ...second, content: Buffer.concat([second.content, Buffer.alloc(by)]) }, ...rest];
}

test('an archive that was filled up to a whole record is read as it is', async () => {
  const filled = Buffer.concat([tarOf(entries), Buffer.alloc(8 * 512)]);
  expect((await open(zstdCompressSync(filled))).gone.size).toBe(0);
});

test.each<[string, () => Buffer]>([
  ['bytes after the end of the archive', () => zstdCompressSync(Buffer.concat([tarOf(entries), content]))],
  ['zeros without end', () => zstdCompressSync(Buffer.concat([tarOf(entries), Buffer.alloc(2 ** 24)]))],
  ['a byte after the compressed archive', () => Buffer.concat([readFileSync(whole), content])],
  ['what zstd skips after a full buffer', () => Buffer.concat([fillingBuffer(), skipped])],
  [
    'zeros, compressed, after a full buffer',
    () => Buffer.concat([fillingBuffer(), zstdCompressSync(Buffer.alloc(512))]),
  ],
])('%s: a bundle that something follows is refused', async (_, change) => {
  writeFileSync(file(), change());
  await refused(/its end: something follows$/);
});

/** A frame of 4 bytes that zstd skips. */
const skipped = Buffer.from('502a4d180400000001020304', 'hex');

/** The bundle, filled up with blanks until its archive ends where a buffer of the reader ends. */
function fillingBuffer(): Buffer {
  const [first, ...rest] = entries;
  if (!first) throw new Error('there is a statement');
  const blanks = Buffer.alloc(evidenceBundles.bytes.piece - tarOf(entries).length, ' ');
  const tar = tarOf([{ ...first, content: Buffer.concat([first.content, blanks]) }, ...rest]);
  expect(tar).toHaveLength(evidenceBundles.bytes.piece);
  return zstdCompressSync(tar);
}

test('a bundle after something that zstd skips is refused', async () => {
  const bundle = readFileSync(whole);
  const before = Buffer.alloc(evidenceBundles.bytes.piece);
  skipped.copy(before, 0, 0, 4);
  before.writeUInt32LE(before.length - 8, 4);
  // Read as a frame's headers, this is one block up to the end of the file.
  before.writeUIntLE(((before.length + bundle.length - 16) << 3) | 1, 13, 3);
  writeFileSync(file(), Buffer.concat([before, bundle]));
  await refused(/does not begin with the compressed archive$/);
});

test.each(['-1', 'NaN'])('a header that says its content has %s bytes is refused', async (size) => {
  const tar = tarOf(entries);
  const [first] = entries;
  const start = tarOf([first as Entry]).length - 1024;
  // The record before the header, which is what counts.
  const own = /(\d+) size=(\d+)\n/.exec(tar.toString('latin1', start, start + 1024));
  if (!own?.[0]) throw new Error('there is a record of the size');
  const record = ` size=${size}\n`;
  let length = record.length;
  while (length !== record.length + String(length).length) length = record.length + String(length).length;
  const header = tar.subarray(start, start + 1536).toString('latin1');
  const records = header.slice(512, 1024).replace(/\0+$/, '').replace(own[0], `${length}${record}`);
  const changed = Buffer.concat([
    tar.subarray(0, start),
    withSize(tar.subarray(start, start + 512), records.length),
    Buffer.from(records.padEnd(512, '\0'), 'latin1'),
    tar.subarray(start + 1024),
  ]);
  writeFileSync(file(), zstdCompressSync(changed));
  await refused(/its size is|the statement says|damaged|ended in the middle/);
});

/** A header with another size, and its checksum. */
function withSize(block: Buffer, size: number): Buffer {
  const made = Buffer.from(block);
  made.write(size.toString(8).padStart(11, '0'), 124);
  made.fill(' ', 148, 156);
  const sum = made.reduce((total, byte) => total + byte, 0);
  made.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return made;
}

test.each<[string, () => Buffer, RegExp]>([
  ['an empty file', () => Buffer.alloc(0), /./],
  ['a tar archive that is not compressed', () => tarOf(entries), /not compressed with zstd/],
  ['half of a bundle', () => readFileSync(whole).subarray(0, 2000), /./],
  [
    'a bundle without its end',
    () => zstdCompressSync(tarOf(entries).subarray(0, -1024)),
    /ended in the middle/,
  ],
  ['zeros without end, in some bytes', () => zstdCompressSync(Buffer.alloc(2 ** 24)), /not the first entry/],
])('%s is refused', async (_, bytes, why) => {
  writeFileSync(file(), bytes());
  await refused(why);
});

test('a file that does not exist is an error of its own', async () => {
  rmSync(file(), { force: true });
  await expect(open()).rejects.toMatchObject({ code: 'EVIDENCE_UNREADABLE', kind: 'input' });
});

type Changed = ReturnType<typeof statementIn>;
const hash = 'a'.repeat(64);
const listed = (sha256: string, byteSize: number) => ({ kind: 'blob' as const, sha256, byteSize });

/** The statement, with these contents in its list. */
const listing =
  (...more: unknown[]) =>
  (one: Changed) => {
    one.predicate.contents.push(...(more as Changed['predicate']['contents']));
    return one;
  };

test.each<[string, (statement: Changed) => unknown, RegExp]>([
  ['a terabyte', listing(listed(hash, 2 ** 40)), /at most \d+ are read/],
  ['a thousand times the file', listing(listed(hash, 2 ** 32)), /more than 1000 times/],
  ['a content twice', (one) => listing(one.predicate.contents[0])(one), /a content twice/],
  ['a path for a hash', listing(listed('../../escaped', 1)), /predicate.contents.\d+.sha256/],
  ['a negative size', listing(listed(hash, -1)), /predicate.contents.\d+.byteSize/],
  [
    'a kind that leads elsewhere',
    listing({ ...listed(hash, 1), kind: '../x' }),
    /predicate.contents.\d+.kind/,
  ],
  [
    'a run twice',
    (one) => {
      one.predicate.batch.runs.push({ ...(one.predicate.batch.runs[0] as object), trials: [] } as never);
      return one;
    },
    /a run twice/,
  ],
  [
    'a trial twice',
    (one) => {
      const trial = { ordinal: 0, attempts: [], gradings: [] };
      one.predicate.batch.runs[0]?.trials.push(trial);
      return one;
    },
    /a trial twice/,
  ],
  [
    'an attempt twice',
    (one) => {
      const attempts = one.predicate.batch.runs[0]?.trials[0]?.attempts;
      attempts?.push(attempts[0] as never);
      return one;
    },
    /an attempt twice/,
  ],
  [
    'other subjects than its trials',
    (one) => {
      one.subject.pop();
      return one;
    },
    /its subjects are not/,
  ],
  [
    'another kind of statement',
    (one) => ({ ...one, predicateType: 'https://slsa.dev/provenance/v1' }),
    /predicateType/,
  ],
  ['members that nobody knows', (one) => ({ ...one, more: 1 }), /more/],
  [
    'a thousand levels',
    (one) => ({ ...one, predicate: JSON.parse('['.repeat(1000) + ']'.repeat(1000)) }),
    /levels/,
  ],
  ['nothing', () => null, /the statement/],
])('a statement with %s is refused before anything is written', async (_, change, why) => {
  writeBundle(file(), await withStatement(entries, change(statementIn(entries))));
  await refused(why);
});

test.each([
  ['no JSON', 'x'],
  ['another payload type', JSON.stringify({ payloadType: 'text/plain', payload: '', signatures: [] })],
  [
    'a payload that is not base64',
    JSON.stringify({ payloadType: 'application/vnd.in-toto+json', payload: '%', signatures: [] }),
  ],
])('an envelope with %s is refused', async (_, text) => {
  writeBundle(file(), [{ name: 'statement.json', content: Buffer.from(text) }, ...entries.slice(1)]);
  await refused(/statement\.json/);
});

test.each<[string, (statement: Changed) => string | undefined, string, RegExp]>([
  ['record', (one) => one.subject[0]?.digest.sha256, '{"version":2}', /blobs\/.*the record cannot be read/],
  ['record of the future', (one) => one.subject[0]?.digest.sha256, '{"version":99}', /newer Offsite/],
  [
    'record of a thousand levels',
    (one) => one.subject[0]?.digest.sha256,
    `{"a":${'['.repeat(1000)}${']'.repeat(1000)}}`,
    /levels/,
  ],
  ['plan', (one) => one.predicate.batch.plan, '{"version":1,"plan":7}', /it is no plan/],
  ['plan of the future', (one) => one.predicate.batch.plan, '{"version":99}', /it is no plan/],
  ['plan of no trials', (one) => one.predicate.batch.plan, planWith(0, 'a'), /asks for 0 trials/],
  ['plan with a case twice', (one) => one.predicate.batch.plan, planWith(1, 'a', 'a'), /a case twice/],
  ['setup', (one) => one.predicate.batch.runs[0]?.setup, '7', /it is no setup/],
])('a %s that cannot be read is refused', async (_, sha256, text, why) => {
  writeBundle(file(), await forged(entries, sha256(statementIn(entries)) ?? '', () => text));
  await refused(why);
});

function planWith(trials: unknown, ...ids: string[]): string {
  const cases = ids.map((id) => ({ request: { id }, local: {} }));
  return JSON.stringify({ version: 1, prompt: '', plan: { trials, cases, variants: [] } });
}

/** Lowers a bound until the result is disposed of, so that what breaks it need not be large. */
function lowered<Name extends string>(bounds: Readonly<Record<Name, number>>, name: Name, most: number) {
  const before = bounds[name];
  const set = (to: number) => Object.assign(bounds, { [name]: to });
  set(most);
  return { [Symbol.dispose]: () => void set(before) };
}

test('a statement with more contents than are read is refused before anything is written', async () => {
  const { contents } = statementIn(entries).predicate;
  using _lowered = lowered(evidenceBundles.count, 'contents', contents.length - 1);
  writeBundle(file(), entries);
  await refused(`lists more than ${contents.length - 1} contents`);
});

test('a record that names many contents is refused for as many trials as it is given to', async () => {
  using _lowered = lowered(evidenceBundles.count, 'names', 1_000);
  const { subject } = statementIn(entries);
  const sha256 = subject[0]?.digest.sha256 ?? '';
  const artifact = { path: '', sha256: hash, byteSize: 0 };
  const naming = (text: string, count: number) =>
    JSON.stringify({ ...JSON.parse(text), artifacts: Array.from({ length: count }, () => artifact) });
  const count = evidenceBundles.count.names / subject.length + 1;
  const large = await forged(entries, sha256, (text) => naming(text, count));
  const own = statementIn(large);
  const record = own.subject[0]?.digest.sha256 ?? '';
  for (const run of own.predicate.batch.runs)
    for (const trial of run.trials) if (trial.result) trial.result.record = record;
  own.subject = subjectsOf(own.predicate.batch);
  writeBundle(file(), await withStatement(large, own));
  await refused(/records name more than \d+ contents/);
});

test('a name of a content that leads out of the folder is that of no file', async () => {
  const endless = '../../../../../../../../dev/zero';
  const sha256 = statementIn(entries).subject[0]?.digest.sha256 ?? '';
  const change = (text: string) => {
    const record = JSON.parse(text);
    record.artifacts[0].sha256 = 'c'.repeat(64);
    record.changes[0].after.content = endless;
    record.left.sha256 = endless;
    return JSON.stringify(record);
  };
  writeBundle(file(), await forged(entries, sha256, change));
  await open();
  using ledger = new Ledger(join(place(), 'inner', 'opened'), systemClock);
  expect(await ledger.blobs.verify(endless)).toBe('missing');
  expect(await ledger.workspaces.verify(endless)).toBe('missing');
  expect(ledger.blobs.stat(endless)).toBeUndefined();
  expect(ledger.blobs.tryRead(endless)).toBeUndefined();
  expect(ledger.workspaces.has(endless)).toBe(false);
});

test('a plan with a sandbox that no configuration can have is refused', async () => {
  const plan = statementIn(entries).predicate.batch.plan ?? '';
  const change = (text: string) => text.replace('"passEnv":["HOME"]', '"passEnv":[],"cpus":"all"');
  writeBundle(file(), await forged(entries, plan, change));
  await refused(/a sandbox that cannot be: cpus/);
});

test('a statement that is too large is refused by its header', async () => {
  const content = Buffer.alloc(0);
  const size = evidenceBundles.bytes.statement + 1;
  writeBundle(file(), [{ name: 'statement.json', content, header: { size } }]);
  await refused(/has more than \d+ bytes/);
});

test('a folder with files in it is left as it is', async () => {
  await expect(openEvidence(whole, folder, { signal, clock: systemClock })).rejects.toMatchObject({
    code: 'EVIDENCE_FOLDER_USED',
  });
  expect(readdirSync(folder)).toContain('whole.tar.zst');
});

test('a flipped bit is found, or makes no difference', async () => {
  const read = (content: Buffer) => {
    writeFileSync(file(), content);
    return readEvidence(file(), { signal });
  };
  const bytes = readFileSync(whole);
  const { digest } = await read(bytes);
  const tar = zstdDecompressSync(bytes);
  const found = { refused: 0, found: 0, same: 0 };
  for (let flip = 0; flip < 60; flip++) {
    // Half of the flips are in what is stored, half in what is read of it.
    const changed = Buffer.from(flip % 2 === 0 ? bytes : tar);
    const place_ = (flip * 7919 * 104_729) % changed.length;
    changed[place_] = (changed[place_] ?? 0) ^ (1 << (flip % 8));
    const opened = await read(flip % 2 === 0 ? changed : zstdCompressSync(changed)).catch((error) => {
      expect(error.code).toBe('EVIDENCE_REFUSED');
      return undefined;
    });
    if (!opened) found.refused++;
    else if (opened.gone.size > 0) found.found++;
    else {
      expect(opened.digest).toBe(digest);
      found.same++;
    }
  }
  expect(found.refused + found.found).toBeGreaterThan(20);
});
