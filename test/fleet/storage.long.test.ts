import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { s3Storage } from '../../src/fleet/storage/s3-storage.ts';
import {
  type FleetStorage,
  folderStorage,
  hashOf,
  type IndexedResult,
} from '../../src/fleet/storage/storage.ts';
import { type ObjectStore, openObjectStore } from './object-store.ts';

const folder = mkdtempSync(join(tmpdir(), 'offsite-storage-'));
let store: ObjectStore;

beforeAll(async () => {
  store = await openObjectStore(folder);
});
afterAll(async () => {
  await store?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** Sets the keys that AWS's packages find, and no others. */
function withKeys(env: Record<string, string> = store.env): void {
  for (const [name, value] of Object.entries({ AWS_PROFILE: '', ...env })) vi.stubEnv(name, value);
  vi.stubEnv('AWS_CONFIG_FILE', join(folder, 'none'));
  vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', join(folder, 'none'));
  vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
}
afterEach(() => vi.unstubAllEnvs());

async function resultsOf(storage: FleetStorage, batch: string): Promise<IndexedResult[]> {
  const found = await Array.fromAsync(storage.results(batch));
  return found.toSorted((a, b) => a.ordinal - b.ordinal);
}

describe.each<[string, () => FleetStorage, (name: string, content: string) => Promise<void>]>([
  [
    'a folder',
    () => {
      mkdirSync(join(folder, 'shared'), { recursive: true });
      return folderStorage(join(folder, 'shared'));
    },
    async (name, content) => writeFileSync(join(folder, 'shared', name), content),
  ],
  [
    'a bucket',
    () => s3Storage({ ...store.config, prefix: 'here/below' }),
    async (name, content) => {
      const object = { Bucket: store.config.bucket, Key: `here/below/${name}`, Body: content };
      await store.client.send(new PutObjectCommand(object));
    },
  ],
])('%s', (_, open, overwrite) => {
  test('keeps contents under their hashes, once', async () => {
    withKeys();
    const storage = open();
    const content = Buffer.alloc(20 * 1024 ** 2, 'content');
    const sha256 = hashOf(content);
    expect(await storage.has(sha256)).toBe(false);
    await storage.put(sha256, content);
    await storage.put(sha256, content);
    expect(await storage.has(sha256)).toBe(true);
    expect((await storage.get(sha256)).equals(content)).toBe(true);
  });

  test('says what is missing, and what is damaged', async () => {
    withKeys();
    const storage = open();
    const missing = hashOf('missing');
    await expect(storage.get(missing)).rejects.toMatchObject({ code: 'FLEET_CONTENT_MISSING' });
    const sha256 = hashOf('right');
    await storage.put(sha256, Buffer.from('right'));
    await overwrite(`contents/${sha256.slice(0, 2)}/${sha256}`, 'wrong');
    await expect(storage.get(sha256)).rejects.toMatchObject({ code: 'FLEET_CONTENT_DAMAGED' });
  });

  test('lists the results of a batch, however many, and of no other', async () => {
    withKeys();
    const storage = open();
    const count = 1_005;
    const batch = 'batch/../with "odd" name';
    const results = Array.from({ length: count }, (_each, ordinal) => ({
      run: 'run',
      ordinal,
      record: hashOf(String(ordinal)),
    }));
    for (let from = 0; from < count; from += 20)
      await Promise.all(results.slice(from, from + 20).map((result) => storage.addResult(batch, result)));
    const again = { run: 'run', ordinal: 3, record: hashOf('again') };
    await storage.addResult(batch, again);
    await storage.addResult('batch', { run: 'other', ordinal: 0, record: hashOf('other') });
    const expected = results.map((result) => (result.ordinal === 3 ? again : result));
    expect(await resultsOf(storage, batch)).toEqual(expected);
    expect(await resultsOf(storage, 'none')).toEqual([]);
  });
});

test.each<[string, () => { config: object; env?: Record<string, string> }, RegExp, RegExp]>([
  ['bucket', () => ({ config: { bucket: 'no-such-bucket' } }), /NoSuchBucket|AccessDenied/, /correct/],
  [
    'key',
    () => ({ config: {}, env: { AWS_ACCESS_KEY_ID: 'nobody', AWS_SECRET_ACCESS_KEY: 'x' } }),
    /InvalidAccessKeyId/,
    /AWS_ACCESS_KEY_ID/,
  ],
  [
    'secret',
    () => ({ config: {}, env: { ...store.env, AWS_SECRET_ACCESS_KEY: 'wrong' } }),
    /SignatureDoesNotMatch/,
    /AWS_SECRET_ACCESS_KEY/,
  ],
  [
    'keys at all',
    () => ({ config: {}, env: { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '' } }),
    /CredentialsProviderError/,
    /Set AWS_ACCESS_KEY_ID/,
  ],
])('a bucket with a wrong or missing %s says what to do', async (_, parts, message, hint) => {
  const { config, env } = parts();
  withKeys(env);
  const storage = s3Storage({ ...store.config, ...config });
  const failed = await storage.addResult('b', { run: 'r', ordinal: 0, record: hashOf('') }).then(
    () => undefined,
    (error: Error & { hint?: string; kind?: string }) => error,
  );
  expect(failed?.message).toMatch(message);
  expect(failed?.hint).toMatch(hint);
  expect(failed?.kind).toBe('input');
});

test('a store that was killed has what it had accepted', async () => {
  withKeys();
  const storage = s3Storage({ ...store.config, prefix: 'killed' });
  const sha256 = hashOf('kept');
  await storage.put(sha256, Buffer.from('kept'));
  await store.kill();
  await expect(storage.get(sha256)).rejects.toMatchObject({
    code: 'FLEET_STORAGE_UNUSABLE',
    kind: 'infrastructure',
  });
  await store.start();
  await expect.poll(() => storage.get(sha256).then(String, () => undefined)).toBe('kept');
});
