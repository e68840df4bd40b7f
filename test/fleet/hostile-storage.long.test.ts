import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { folderStorage, hashOf } from '../../src/fleet/storage/storage.ts';

function openFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-hostile-storage-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const place = (path: string) => {
    const whole = join(folder, 'shared', path);
    mkdirSync(dirname(whole), { recursive: true });
    return whole;
  };
  mkdirSync(join(folder, 'shared'));
  mkdirSync(join(folder, 'elsewhere'));
  return { storage: folderStorage(join(folder, 'shared')), place, elsewhere: join(folder, 'elsewhere') };
}

const content = Buffer.from('content');
const sha256 = hashOf(content);
const path = `contents/${sha256.slice(0, 2)}/${sha256}`;

test.each<[string, (path: string) => void, RegExp]>([
  ['a link to a device', (at) => symlinkSync('/dev/zero', at), /cannot read/],
  ['a link to a file of the host', (at) => symlinkSync('/etc/hostname', at), /cannot read/],
  ['a pipe that nobody writes to', (at) => void execFileSync('mkfifo', [at]), /not a regular file/],
  ['a folder', (at) => void mkdirSync(at), /not a regular file/],
  ['another content', (at) => writeFileSync(at, 'other'), /damaged/],
  ['a longer content', (at) => writeFileSync(at, Buffer.alloc(200)), /larger than 100 bytes/],
])('%s in place of a content is refused at once', async (_, make, message) => {
  const { storage, place } = openFolder();
  make(place(path));
  await expect(storage.get(sha256, 100)).rejects.toThrow(message);
});

test('a link in place of a folder leads nothing out of the storage, and nothing in', async () => {
  const { storage, place, elsewhere } = openFolder();
  symlinkSync(elsewhere, place('contents'));
  await expect(storage.put(sha256, content)).rejects.toThrow(/not a folder/);
  expect(readdirSync(elsewhere)).toEqual([]);
  mkdirSync(join(elsewhere, sha256.slice(0, 2)));
  writeFileSync(join(elsewhere, sha256.slice(0, 2), sha256), content);
  await expect(storage.get(sha256)).rejects.toThrow(/not a folder/);

  symlinkSync(elsewhere, place(`results/${hashOf('batch')}`));
  const result = { run: 'run', ordinal: 0, record: sha256 };
  await expect(storage.addResult('batch', result)).rejects.toThrow(/not a folder/);
  await expect(Array.fromAsync(storage.results('batch'))).rejects.toThrow(/not a folder/);
});

test('a hash that is a path is no name of a content', async () => {
  const { storage } = openFolder();
  await expect(storage.get('../../etc/hostname')).rejects.toThrow();
  await expect(storage.put('../x', content)).rejects.toThrow();
});
