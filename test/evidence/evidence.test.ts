import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, hash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { readPlan } from '../../src/agent/batch-run.ts';
import { auditBatch } from '../../src/audit/audit-batch.ts';
import { openAuditedFile, readPublicKeys } from '../../src/audit/audited-file.ts';
import { systemClock } from '../../src/base/clock.ts';
import { keySigning } from '../../src/evidence/envelope.ts';
import { openEvidence } from '../../src/evidence/open-evidence.ts';
import { readEvidence } from '../../src/evidence/read-evidence.ts';
import { carriedBatch } from '../../src/ledger/carried-batch.ts';
import { checkLedger } from '../../src/ledger/check.ts';
import { listTrials } from '../../src/ledger/find.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import type { Config } from '../../src/suite/config-file.ts';
import { eachFolder, folder } from '../each-folder.ts';
import { exportEvidence, fillBatch } from './batch.ts';

let ledger: Ledger;
let batch: number;
eachFolder();
beforeAll(async () => {
  const data = mkdtempSync(join(tmpdir(), 'offsite-evidence-'));
  ledger = new Ledger(data, systemClock);
  batch = await fillBatch(ledger);
  return () => {
    ledger[Symbol.dispose]();
    rmSync(data, { recursive: true });
  };
});

const { signal } = new AbortController();

const file = () => join(folder, 'evidence.tar.zst');
const exported = (options: Parameters<typeof exportEvidence>[3] = {}) =>
  exportEvidence(ledger, batch, file(), options);

test('evidence of a batch opens in another folder with every row and content, and nothing to do', async () => {
  const { file, digest, leftOut } = await exported();
  expect(leftOut).toEqual([]);
  const opened = await openEvidence(file, join(folder, 'opened'), { signal, clock: systemClock });
  expect(opened).toMatchObject({ digest, gone: new Map(), signature: undefined });
  using other = new Ledger(join(folder, 'opened'), systemClock);
  const { plan, ...before } = carriedBatch(ledger, batch);
  const { plan: defused, ...after } = carriedBatch(other, opened.batch);
  const parked = JSON.parse(JSON.stringify(before).replaceAll('"queued"', '"parked"'));
  parked.runs[3].trials[1].withdrawn = 'elsewhere';
  expect(after).toEqual({ ...parked, service: 'foreign' });
  expect(plan).not.toBe(defused);
  for (const { result, key } of listTrials(other.records, opened.batch)) {
    expect(other.blobs.read(result ?? '')).toEqual(ledger.blobs.read(result ?? ''));
    const kept = other.workspaces.of(key);
    expect(kept).toMatchObject({ kind: 'archive', byteSize: 10 });
    expect(await other.workspaces.verify(kept?.name ?? '')).toBe('whole');
  }
  expect(await checkLedger(other, signal)).toMatchObject({ damaged: [], missing: [], otherVerdicts: [] });
  expect(other.batches.open()).toEqual([]);
  expect(other.outbox.due({ service: 'foreign', now: Number.MAX_SAFE_INTEGER, limit: 10 })).toEqual([]);
  // Nothing of this machine.
  const { variants, cases } = readPlan(other.blobs.readJson(defused ?? ''));
  expect(variants.map(({ modelConfig, sandbox }) => [modelConfig, sandbox.passEnv])).toEqual([
    [undefined, []],
    [undefined, []],
  ]);
  expect(JSON.stringify(cases)).not.toContain('"folder":"/home');
});

test('evidence of a batch whose results were sent, and not seen at the service yet, opens', async () => {
  using own = new Ledger(join(folder, 'data'), systemClock);
  const key = await fillBatch(own);
  const [trial] = listTrials(own.records, key);
  own.outbox.become(trial?.key ?? 0, 'sent');
  await exportEvidence(own, key, file());
  const opened = await openEvidence(file(), join(folder, 'opened'), { signal, clock: systemClock });
  expect(opened.signature).toBeUndefined();
});

test('a bundle is a tar archive that other programs list, with the statement first', async () => {
  const { file, statement } = await exported();
  const names = execFileSync('tar', ['--zstd', '-tf', file], { encoding: 'utf8' }).trim().split('\n');
  expect(names[0]).toBe('statement.json');
  expect(names.slice(1)).toEqual(
    statement.predicate.contents.map(({ kind, sha256 }) => `${kind}s/${sha256}`),
  );
  expect(statement.subject[0]?.name).toBe('batch_1/adds/one/0');
});

test('each report that is sent names its record, and so does the evidence', async () => {
  const { statement } = await exported();
  for (const { trials } of statement.predicate.batch.runs)
    for (const { result, report } of trials) {
      if (!result || !report) continue;
      const { outcome } = ledger.blobs.readJson(report.body) as { outcome: { artifacts: object[] } };
      expect(outcome.artifacts.at(-1)).toMatchObject({ path: '.offsite/record.json', sha256: result.record });
    }
});

test('a signature holds for its own key, and openssl accepts it', async () => {
  const key = join(folder, 'key.pem');
  execFileSync('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', key], { stdio: 'pipe' });
  const { file, digest } = await exported({ signing: keySigning(key) });
  const { signature } = await readEvidence(file, { signal });
  expect(signature).toMatchObject({ of: 'key', holds: true, isTrusted: undefined });
  const other = generateKeyPairSync('ed25519').publicKey;
  expect((await readEvidence(file, { signal, trustedKeys: [other] })).signature).toMatchObject({
    holds: true,
    isTrusted: false,
  });

  const tar = ['--zstd', '-xOf', file, 'statement.json'];
  const { payload, signatures } = JSON.parse(execFileSync('tar', tar, { encoding: 'utf8' }));
  const type = 'application/vnd.in-toto+json';
  const bytes = Buffer.from(payload, 'base64');
  const message = Buffer.concat([Buffer.from(`DSSEv1 ${type.length} ${type} ${bytes.length} `), bytes]);
  writeFileSync(join(folder, 'message'), message);
  writeFileSync(join(folder, 'sig'), Buffer.from(signatures[0].sig, 'base64'));
  const verify = ['pkeyutl', '-verify', '-inkey', key, '-rawin', '-in', 'message', '-sigfile', 'sig'];
  expect(execFileSync('openssl', verify, { cwd: folder, encoding: 'utf8' })).toContain(
    'Verified Successfully',
  );
  expect(hash('sha256', bytes)).toBe(digest);
});

test.each([
  ['ec', ['genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'], 'one for ed25519 is needed'],
  ['a passphrase', ['genpkey', '-algorithm', 'ed25519', '-aes256', '-pass', 'pass:x'], 'passphrase'],
])('a key of another kind is refused: %s', (_, args, why) => {
  const key = join(folder, 'key.pem');
  execFileSync('openssl', [...args, '-out', key], { stdio: 'pipe' });
  expect(() => keySigning(key)).toThrow(why);
});

/** A key of ssh-keygen: the path of its private half. */
function sshKey(name: string, type: string, passphrase = ''): string {
  const key = join(folder, name);
  execFileSync('ssh-keygen', ['-t', type, '-N', passphrase, '-q', '-f', key], { stdio: 'pipe' });
  return key;
}

test('a key of ssh-keygen signs, and its public file, or a list with it, says whose it is', async () => {
  const [own, other] = [sshKey('own', 'ed25519'), sshKey('other', 'ed25519')];
  const { file } = await exported({ signing: keySigning(own) });
  const signedBy = async (...files: string[]) => {
    const trustedKeys = files.flatMap(readPublicKeys);
    return (await readEvidence(file, { signal, trustedKeys })).signature;
  };
  expect(await signedBy(`${own}.pub`)).toMatchObject({ holds: true, isTrusted: true });
  expect(await signedBy(`${other}.pub`)).toMatchObject({ holds: true, isTrusted: false });
  const list = join(folder, 'keys');
  writeFileSync(list, [`${other}.pub`, `${own}.pub`].map((one) => readFileSync(one, 'utf8')).join(''));
  expect(await signedBy(list)).toMatchObject({ holds: true, isTrusted: true });
  expect(() => readPublicKeys(own)).toThrow('it is a private key');
});

test('the public half of a key is refused as such, and not as a damaged key', () => {
  expect(() => keySigning(`${sshKey('own', 'ed25519')}.pub`)).toThrow('it is the public half of a key');
});

test.each([
  ['with a passphrase', () => sshKey('one', 'ed25519', 'secret'), 'passphrase'],
  ['for ECDSA', () => sshKey('one', 'ecdsa'), 'one for ed25519 is needed'],
  [
    'that is cut',
    () => {
      const key = sshKey('one', 'ed25519');
      const [begin = '', ...lines] = readFileSync(key, 'utf8').trimEnd().split('\n');
      writeFileSync(key, [begin, ...lines.slice(0, 2), lines.at(-1)].join('\n'));
      return key;
    },
    'damaged',
  ],
])('a key of ssh-keygen %s is refused', (_, make, why) => {
  expect(() => keySigning(make())).toThrow(why);
});

test('a content with a key of this machine is left out and named; a record with one ends the export', async () => {
  const { file, leftOut } = await exported({ secrets: ['answer 3'] });
  expect(leftOut).toEqual([
    expect.stringMatching(/^blobs\/[0-9a-f]{64} \(the record of .*\): a key of this machine is in it$/),
  ]);
  expect((await readEvidence(file, { signal })).gone.size).toBe(0);
  await expect(exported({ secrets: ['Case sorts'] })).rejects.toMatchObject({ code: 'EVIDENCE_HAS_KEY' });
});

test('what the owner left out is not checked, and not contradicted', async () => {
  const { file } = await exported({ secrets: ['answer 3'] });
  const { whole, trials } = await audited(file);
  const intact = trials.flatMap(({ audit }) => audit.levels.filter(({ level }) => level === 'intact'));
  expect([whole.isContradicted, intact.every(({ state }) => state === 'held')]).toEqual([false, true]);
  const unchecked = intact.flatMap((one) => one.unchecked);
  expect(unchecked).toContain('the text of "a.txt" after is no longer kept');
});

/** The levels of an audit that need no engine. */
async function audited(file: string) {
  const opened = await openAuditedFile(file, {
    folder: join(folder, 'audited'),
    trusted: undefined,
    clock: systemClock,
    redactor: new Redactor([]),
    signal,
  });
  using ledger = opened.ledger;
  const config = {} as Config;
  const parts = {
    ...opened,
    ledger,
    config,
    harnesses: [],
    now: 0,
    concurrency: 1,
    observe: () => undefined,
  };
  return await auditBatch(opened.batch, parts, signal);
}

test('a batch whose plan is lost is exported without it, and that is said', async () => {
  using own = new Ledger(join(folder, 'data'), systemClock);
  const key = await fillBatch(own);
  const { plan = '' } = own.batches.byKey(key);
  rmSync(own.blobs.pathOf(plan));
  const { leftOut } = await exportEvidence(own, key, file());
  expect(leftOut).toEqual([`blobs/${plan} (the plan): it is missing or damaged`]);
  const { whole } = await audited(file());
  expect(whole.level('consistent')).toMatchObject({
    state: 'held',
    unchecked: expect.arrayContaining([expect.stringMatching(/^whether trials are missing/)]),
  });
});
