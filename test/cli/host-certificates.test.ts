import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { caBundleOf, npmCafile } from '../../src/api/host-certificates.ts';

const pem = '-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n';

describe("the host's certificate authorities", () => {
  let folder: Awaited<ReturnType<typeof mkdtempDisposable>>;
  const at = (name: string) => join(folder.path, name);

  beforeAll(async () => {
    folder = await mkdtempDisposable(join(tmpdir(), 'offsite-certificates-'));
    for (const name of ['setting.pem', 'node.pem', 'openssl.pem', 'npm.pem']) await writeFile(at(name), pem);
    await writeFile(at('empty.pem'), '');
  });
  afterAll(() => folder.remove());

  test("are the setting's before all others", async () => {
    const env = { NODE_EXTRA_CA_CERTS: at('node.pem') };
    expect(await caBundleOf({ env, explicit: at('setting.pem') })).toMatchObject({ path: at('setting.pem') });
  });

  test("are Node's, then OpenSSL's, then npm's", async () => {
    const npm = at('npm.pem');
    const both = { NODE_EXTRA_CA_CERTS: at('node.pem'), SSL_CERT_FILE: at('openssl.pem') };
    expect(await caBundleOf({ env: both, npmCafile: npm })).toMatchObject({ namedBy: 'NODE_EXTRA_CA_CERTS' });
    const one = { SSL_CERT_FILE: at('openssl.pem') };
    expect(await caBundleOf({ env: one, npmCafile: npm })).toMatchObject({ namedBy: 'SSL_CERT_FILE' });
    const found = await caBundleOf({ env: {}, npmCafile: npm });
    expect(found).toEqual({ path: npm, namedBy: "npm's cafile", pem: Buffer.from(pem) });
  });

  test('are none beside the public ones when nothing names any', async () => {
    expect(await caBundleOf({ env: {} })).toBeUndefined();
    expect(
      await caBundleOf({ env: { NODE_EXTRA_CA_CERTS: '', SSL_CERT_FILE: '' }, explicit: '' }),
    ).toBeUndefined();
  });

  test.each(['missing.pem', 'empty.pem'])('cannot be a setting that names %s', async (name) => {
    const found = caBundleOf({ env: {}, explicit: at(name) });
    await expect(found).rejects.toMatchObject({ code: 'CA_BUNDLE_UNUSABLE', kind: 'input' });
  });

  test('pass over a stale variable that another program uses too', async () => {
    const env = { NODE_EXTRA_CA_CERTS: at('missing.pem'), SSL_CERT_FILE: at('openssl.pem') };
    expect(await caBundleOf({ env })).toMatchObject({ path: at('openssl.pem') });
  });

  test("include what the user's .npmrc names", async () => {
    await writeFile(at('.npmrc'), 'registry=https://example.test/\n cafile = "/etc/company.pem"\n');
    expect(await npmCafile({}, folder.path)).toBe('/etc/company.pem');
    expect(await npmCafile({ npm_config_cafile: '/other.pem' }, folder.path)).toBe('/other.pem');
    expect(await npmCafile({}, '/nonexistent')).toBeUndefined();
  });
});
