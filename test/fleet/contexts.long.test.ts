import { lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Contexts } from '../../src/fleet/contexts.ts';
import { folderStorage, hashOf } from '../../src/fleet/storage/storage.ts';
import type { PlannedCase } from '../../src/suite/plan.ts';
import { countFinished } from '../daemon/sharing.ts';
import { openFleetPlace } from './fleet-place.ts';

const hash = 'a'.repeat(64);
const planned = {
  local: { environment: { build: { context: { folder: '/nowhere', ignore: '', hash } } } },
} as unknown as PlannedCase;

/** Unpacks a context whose list somebody wrote into the storage. */
async function unpacked(list: (sha256: string) => unknown[]) {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-contexts-'));
  const storageFolder = join(folder, 'storage');
  mkdirSync(storageFolder);
  const storage = folderStorage(storageFolder);
  const content = Buffer.from('owned\n');
  await storage.put(hashOf(content), content);
  const text = Buffer.from(JSON.stringify(list(hashOf(content))));
  await storage.put(hashOf(text), text);
  const contexts = new Contexts(join(folder, 'contexts'), storage);
  const brought = contexts.bring(planned, { [hash]: hashOf(text) });
  return {
    folder,
    brought,
    at: join(contexts.folderOf(hash)),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

test('a context has files, folders and links with their modes', async () => {
  using place = await unpacked((sha256) => [
    { path: 'in', type: 'folder', mode: 0o755 },
    { path: 'in/run.sh', type: 'file', mode: 0o750, sha256 },
    { path: 'link', type: 'symlink', linkTarget: 'in/run.sh' },
  ]);
  await place.brought;
  expect(readFileSync(join(place.at, 'link'), 'utf8')).toBe('owned\n');
  expect(lstatSync(join(place.at, 'in/run.sh')).mode & 0o777).toBe(0o750);
});

test.each([
  ['a path above it', (sha256: string) => [{ path: '../up', type: 'file', mode: 0o644, sha256 }]],
  ['an absolute path', (sha256: string) => [{ path: '/tmp/up', type: 'file', mode: 0o644, sha256 }]],
  [
    'a file below a link',
    (sha256: string) => [
      { path: 'out', type: 'symlink', linkTarget: '..' },
      { path: 'out/up', type: 'file', mode: 0o644, sha256 },
    ],
  ],
  [
    'a file in the place of a link',
    (sha256: string) => [
      { path: 'out', type: 'symlink', linkTarget: '../up' },
      { path: 'out', type: 'file', mode: 0o644, sha256 },
    ],
  ],
  [
    'a mode below a link',
    () => [
      { path: 'out', type: 'symlink', linkTarget: '/' },
      { path: 'out/tmp', type: 'folder', mode: 0 },
    ],
  ],
])('a list with %s writes nothing outside', async (_what, list) => {
  using place = await unpacked(list);
  await expect(place.brought).rejects.toMatchObject({ code: 'FLEET_CONTEXT_REFUSED' });
  expect(() => lstatSync(join(place.folder, 'contexts', 'up'))).toThrow();
  expect(() => lstatSync(join(place.folder, 'up'))).toThrow();
});

test('two workers build the same image from one folder of the machine that started the batch', async () => {
  await using fleet = await openFleetPlace();
  fleet.place.write('image/Dockerfile', 'FROM offsite/base\nCOPY words.txt /opt/words.txt\n');
  fleet.place.write('image/words.txt', `from the context ${process.pid}\n`);
  const environment = { build: { context: 'image' } };
  const file = fleet.suite({
    cases: [{ id: 'a', environment, verify: `grep -q 'from the context ${process.pid}' done.txt` }],
    trials: 8,
    run: 'cp /opt/words.txt done.txt',
  });
  await fleet.worker('one', ['-c', '1']);
  await fleet.worker('two', ['-c', '1']);
  const batch = await fleet.started(file);
  // Workers do not read the folder.
  rmSync(join(fleet.place.folder, 'project', 'image'), { recursive: true });
  const outcome = await fleet.client.workflow.getHandle(batch).result();
  expect(outcome).toMatchObject({ passed: 8, failed: 0, void: 0, lost: 0 });
  const { finished } = countFinished(['one', 'two'].map(fleet.folderOf));
  expect(Math.min(...finished)).toBeGreaterThan(0);
});
