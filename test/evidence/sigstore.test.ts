import { writeFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { unsigned } from '../../src/evidence/envelope.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { offsite } from '../cli/offsite.ts';
import { openPlace, type Place } from '../cli/place.ts';
import { type SigstoreDouble, sigstoreDouble, tokenOf } from '../doubles/sigstore.ts';
import { fillBatch } from './batch.ts';
import { entriesOf, statementIn, withStatement, writeBundle } from './bundle-file.ts';

const email = 'someone@example.com';
const issuer = 'https://accounts.example.com';

let sigstore: SigstoreDouble;
let place: Place;
beforeAll(async () => {
  sigstore = await sigstoreDouble();
  place = openPlace();
  using ledger = new Ledger(place.dataFolder, systemClock);
  await fillBatch(ledger);
  write('signing.json', sigstore.signingConfig);
  write('root.json', sigstore.trustedRoot);
  await using other = await sigstoreDouble();
  write('other-root.json', other.trustedRoot);
  const exported = await sign('evidence', tokenOf(email, issuer));
  expect(exported.stderr).toContain(`; signed by ${email}`);
});
afterAll(async () => {
  place?.[Symbol.dispose]();
  await sigstore?.[Symbol.asyncDispose]();
});

const at = (name: string) => join(place.folder, name);
const write = (name: string, content: object) => writeFileSync(at(name), JSON.stringify(content));

function sign(file: string, token: string) {
  const args = ['export', '--evidence', at(file), '--sign-with', at('signing.json')];
  return offsite(place, args, { env: { SIGSTORE_ID_TOKEN: token } });
}

/** Who signed it, as an audit says it, and what it says against that. */
async function signatureIn(file: string, ...signedBy: string[]) {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-sigstore-'));
  const named = signedBy.length > 0 ? ['--signed-by', ...signedBy] : [];
  const { stdout, stderr } = await offsite(place, ['audit', at(file), '--json', ...named], {
    dataFolder: folder.path,
  });
  expect(stdout, stderr).not.toBe('');
  const { signature, whole } = JSON.parse(stdout);
  return { signature, against: whole.contradictions.map(({ found }: { found: string }) => found) };
}

test('evidence that an account signed is trusted by who names the account and its issuer', async () => {
  expect(await signatureIn('evidence', `${email}=${issuer}`, at('root.json'))).toEqual({
    signature: `signed by ${email} (${issuer}), an account of --signed-by`,
    against: [],
  });
});

test('an audit reaches nothing of Sigstore unless an account is named, and says what that means', async () => {
  const before = sigstore.requests.length;
  expect(before).toBe(2);
  expect(await signatureIn('evidence')).toEqual({
    signature: `signed by ${email}, as it says: NOT CHECKED; --signed-by IDENTITY=ISSUER checks it with Sigstore`,
    against: [],
  });
  expect(sigstore.requests).toHaveLength(before);
});

test.each([
  ['another account', `other@example.com=${issuer}`],
  ['an account whose name is part of it', `one@example.com=${issuer}`],
  ['a pattern', `.*=${issuer}`],
  ['the account at another issuer', `${email}=https://other.example.com`],
])('an account is trusted by its whole name: not %s', async (_, identity) => {
  const { against } = await signatureIn('evidence', identity, at('root.json'));
  expect(against).toEqual([`${email} (${issuer}); the file holds what its statement lists`]);
});

test('a certificate of another authority is not trusted', async () => {
  const { signature, against } = await signatureIn('evidence', `${email}=${issuer}`, at('other-root.json'));
  expect(signature).toMatch(/^NOT SIGNED by someone@example.com/);
  expect(against).toEqual([expect.stringMatching(/^its signature of Sigstore does not hold: /)]);
});

test('neither another statement, another signature nor another kind of key passes for the account', async () => {
  const entries = await entriesOf(at('evidence'));
  const [first, ...contents] = entries;
  const bundle = JSON.parse(first?.content.toString() ?? '');
  const statement = statementIn(entries);
  statement.predicate.exportedAt += 1;
  const payload = Buffer.from(JSON.stringify(statement)).toString('base64');
  const { tlogEntries } = bundle.verificationMaterial;
  const forgeries = {
    statement: { ...bundle, dsseEnvelope: { ...bundle.dsseEnvelope, payload } },
    signature: { ...bundle, dsseEnvelope: { ...bundle.dsseEnvelope, signatures: [{ sig: 'AAAA' }] } },
    key: { ...bundle, verificationMaterial: { tlogEntries, publicKey: { hint: 'mine' } } },
    unlogged: {
      ...bundle,
      verificationMaterial: { ...bundle.verificationMaterial, tlogEntries: [] },
    },
    nothing: { ...bundle, verificationMaterial: 1 },
  };
  for (const [name, forged] of Object.entries(forgeries)) {
    writeBundle(at(name), [
      { name: 'statement.json', content: Buffer.from(JSON.stringify(forged)) },
      ...contents,
    ]);
    const { signature, against } = await signatureIn(name, `${email}=${issuer}`, at('root.json'));
    expect(signature, name).toMatch(/^NOT SIGNED by /);
    expect(against, name).toEqual([expect.stringMatching(/^its signature of Sigstore does not hold: /)]);
  }
  writeBundle(at('bare'), await withStatement(entries, statement, unsigned));
  expect(await signatureIn('bare', `${email}=${issuer}`, at('root.json'))).toEqual({
    signature: 'NOT SIGNED: anybody may have written it',
    against: ['none'],
  });
});

test('without a token that Sigstore takes, nothing is written, and the token is not printed', async () => {
  const token = tokenOf(email, issuer, false);
  const refused = await sign('refused', token);
  expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('SIGSTORE_ID_TOKEN') });
  expect(refused.stderr).toContain('not verified');
  expect(refused.stderr).not.toContain(token);
  expect(await offsite(place, ['audit', at('refused')])).toMatchObject({ exitCode: 2 });
});

test('a trusted root alone, and files that are none, are refused', async () => {
  write('empty.json', {});
  writeFileSync(at('broken.json'), '{');
  const audit = (...named: string[]) => offsite(place, ['audit', at('evidence'), '--signed-by', ...named]);
  const said = await Promise.all([
    audit(at('root.json')),
    audit(`${email}=${issuer}`, at('broken.json')),
    offsite(place, ['export', '--evidence', at('none'), '--sign-with', at('empty.json')]),
  ]);
  expect(said.map(({ exitCode }) => exitCode)).toEqual([2, 2, 2]);
  expect(said[0]?.stderr).toContain('Name one, too');
  expect(said[1]?.stderr).toContain('broken.json is no JSON');
  expect(said[2]?.stderr).toContain('is no signing config of Sigstore: mediaType');
});
