import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { tarEntries } from '../../src/engine/archive/tar-entries.ts';
import { archiveEnd, tarHeader } from '../../src/engine/archive/write-archive.ts';
import { firstIdsOf, inContainer, withContainerIds } from '../../src/engine/docker/first-ids.ts';

const security = { seccomp: true, userns: true, rootless: false, apparmor: false, selinux: false };
const entry = { linkName: Buffer.alloc(0), flag: '0', mode: 0o640, modifiedAt: 1_000_000 };

test('the first ids are those of the folder that the engine keeps for its mapping', () => {
  const rootFolder = '/var/lib/docker/231072.296608';
  expect(firstIdsOf({ security, rootFolder })).toEqual({ uid: 231_072, gid: 296_608 });
  const none = { uid: 0, gid: 0 };
  expect(firstIdsOf({ security, rootFolder: '/var/lib/docker' })).toEqual(none);
  expect(firstIdsOf({ security: { ...security, userns: false }, rootFolder })).toEqual(none);
});

test('an id below the first is nobody in the container', () => {
  expect([inContainer(100_000, 100_000), inContainer(101_234, 100_000), inContainer(0, 100_000)]).toEqual([
    0, 1234, 65_534,
  ]);
});

/** An archive of one file, with whatever comes after it. */
const archiveOf = (name: Buffer, after: Buffer) =>
  Readable.from(
    [
      tarHeader({ ...entry, name, size: 5, uid: 101_000, gid: 100_007 }),
      Buffer.concat([Buffer.from('hello'), Buffer.alloc(507)]),
      after,
    ],
    { objectMode: false },
  );

test('an archive gets the ids of the container; names of any bytes and contents stay', async () => {
  const name = Buffer.concat([Buffer.from('name '), Buffer.from([0xff, 0xfe]), Buffer.alloc(200, 'x')]);
  const changed = withContainerIds(archiveOf(name, archiveEnd), { uid: 100_000, gid: 100_000 });
  const seen: unknown[] = [];
  for await (const { header, content } of tarEntries(changed)) {
    const pieces: Buffer[] = [];
    for await (const piece of content()) pieces.push(piece);
    const { name: found, uid, gid, size, mode } = header;
    seen.push({ found, uid, gid, size, mode, content: Buffer.concat(pieces).toString() });
  }
  expect(seen).toEqual([{ found: name, uid: 1000, gid: 7, size: 5, mode: 0o640, content: 'hello' }]);
});

test('an archive that is cut off fails', async () => {
  const changed = withContainerIds(archiveOf(Buffer.from('a'), Buffer.alloc(0)), { uid: 1, gid: 1 });
  await expect(changed.resume().toArray()).rejects.toThrow('ended in the middle');
});
