import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { openDataFolder } from '../../src/ledger/data-folder.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { openService } from '../../src/service/service.ts';
import { offsite } from '../cli/offsite.ts';
import { openPlace } from '../cli/place.ts';

function openFolder() {
  const parent = mkdtempSync(join(tmpdir(), 'offsite-open-'));
  const folder = join(parent, 'data');
  mkdirSync(folder);
  chmodSync(folder, 0o755);
  return { folder, [Symbol.dispose]: () => rmSync(parent, { recursive: true, force: true }) };
}

/** Every file and folder with its mode, as far as others could reach it by that. */
function reachable(folder: string): string[] {
  const below = readdirSync(folder, { recursive: true, withFileTypes: true });
  const paths = [folder, ...below.map(({ parentPath, name }) => join(parentPath, name))];
  const modes = paths.map((path) => [path, statSync(path).mode & 0o7777] as const);
  return modes.filter(([, mode]) => mode & 0o077).map(([path, mode]) => `${path} ${mode.toString(8)}`);
}

const umask = process.umask();

test('all that is kept in a data folder is its owner’s alone, whatever its mode and the umask were', async () => {
  using at = openFolder();
  process.umask(0);
  try {
    using ledger = new Ledger(at.folder, systemClock);
    await using service = openService({ dataFolder: at.folder, clock: systemClock, integrations: [] });
    service.listKeys();
    ledger.reserve.take();
    await ledger.blobs.put(Buffer.from('a result'));
    using lock = ledger.takeLock('daemon');
    expect(lock).toBeDefined();
    expect(readdirSync(at.folder)).toEqual(expect.arrayContaining(['ledger.db-wal', 'service.db-shm']));
    expect(reachable(at.folder)).toEqual([]);
  } finally {
    process.umask(umask);
  }
});

test('what an earlier Offsite left open is closed when it is next used, and works on', async () => {
  using at = openFolder();
  {
    using ledger = new Ledger(at.folder, systemClock);
    using _lock = ledger.takeLock('daemon');
  }
  const below = readdirSync(at.folder, { recursive: true, withFileTypes: true });
  for (const entry of below)
    chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
  chmodSync(at.folder, 0o755);
  using ledger = new Ledger(at.folder, systemClock);
  expect(ledger.batches.open()).toEqual([]);
  expect(reachable(at.folder)).toEqual([]);
});

test('a lock that is held stays held while its folder is closed', () => {
  using at = openFolder();
  using ledger = new Ledger(at.folder, systemClock);
  using _lock = ledger.takeLock('daemon');
  chmodSync(at.folder, 0o755);
  chmodSync(join(at.folder, 'locks', 'daemon.lock'), 0o644);
  using again = new Ledger(at.folder, systemClock);
  expect(again.takeLock('daemon')).toBeUndefined();
  expect(reachable(at.folder)).toEqual([]);
});

test('a folder that holds other things as well is left as it is, and refused', async () => {
  using place = openPlace();
  const suite = place.suite({ cases: [{ id: 'a', verify: 'true' }] });
  const folder = join(place.folder, 'project');
  chmodSync(folder, 0o755);
  chmodSync(suite, 0o644);
  const { exitCode, stderr } = await offsite(place, ['service', 'keys', 'create', '--for', 'read'], {
    dataFolder: folder,
  });
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('it holds offsite.yaml')]);
  expect(statSync(folder).mode & 0o777).toBe(0o755);
  expect(statSync(suite).mode & 0o777).toBe(0o644);
  expect(readdirSync(folder).toSorted()).toEqual(['offsite.yaml', 'suite.yaml']);
});

test('a folder of another user is refused', () => {
  using at = openFolder();
  const uid = statSync(at.folder).uid + 1;
  expect(() => openDataFolder(at.folder, { uid })).toThrow(
    expect.objectContaining({ code: 'DATA_FOLDER_OPEN', kind: 'input' }),
  );
  expect(statSync(at.folder).mode & 0o777).toBe(0o755);
});

test('a folder that cannot be closed is refused: its filesystem keeps no modes', () => {
  // Of the process's own, and always open to everybody.
  expect(() => openDataFolder('/proc/self/task', { isOurs: () => true })).toThrow(
    /cannot be closed|cannot be made/,
  );
});

test('a file of another user, or a link that others could have put there, is refused', () => {
  using at = openFolder();
  writeFileSync(join(at.folder, 'elsewhere'), '');
  symlinkSync('/etc/passwd', join(at.folder, 'ledger.db'));
  chmodSync(at.folder, 0o777);
  rmSync(join(at.folder, 'elsewhere'));
  expect(() => openDataFolder(at.folder)).toThrow(/ledger\.db/);
  expect(statSync('/etc/passwd').mode & 0o044).not.toBe(0);
});
