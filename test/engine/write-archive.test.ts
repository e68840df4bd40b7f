import { text } from 'node:stream/consumers';
import { extract } from 'tar-stream';
import { expect, test } from 'vitest';
import type { NewEntry } from '../../src/engine/archive/entries.ts';
import { tarArchive } from '../../src/engine/archive/write-archive.ts';

/** What another reader of archives finds. */
async function read(entries: Iterable<NewEntry>) {
  const found: unknown[] = [];
  for await (const entry of tarArchive(entries).pipe(extract())) {
    const { name, type, mode, uid, linkname } = entry.header;
    found.push([name, type, mode, uid, linkname, await text(entry)]);
  }
  return found;
}

async function* bytes(...pieces: string[]) {
  for (const piece of pieces) yield Buffer.from(piece);
}

test('another reader finds folders, links and files with their modes, owners and names of any length', async () => {
  const long = `${'long '.repeat(60)}ü`;
  const entries = [
    { path: 'folder', folder: true as const, uid: 1234 },
    { path: 'link', linkTarget: `../${long}` },
    { path: long, mode: 0o4755, content: 'x'.repeat(512) },
    { path: 'empty' },
    { path: 'stream', content: { size: 5, bytes: bytes('ab', 'cde') } },
  ];
  expect(await read(entries)).toEqual([
    ['folder', 'directory', 0o755, 1234, null, ''],
    ['link', 'symlink', 0o644, 0, `../${long}`, ''],
    [long, 'file', 0o4755, 0, null, 'x'.repeat(512)],
    ['empty', 'file', 0o644, 0, null, ''],
    ['stream', 'file', 0o644, 0, null, 'abcde'],
  ]);
});

test.each([[4], [6]])('a file of 5 bytes that was to have %i fails the archive', async (size) => {
  const archive = tarArchive([{ path: 'file', content: { size, bytes: bytes('abcde') } }]);
  await expect(text(archive)).rejects.toThrow('file changed while it was read');
});

test('an archive fails as its entries fail', async () => {
  const entries = async function* (): AsyncGenerator<NewEntry> {
    yield { path: 'file' };
    throw new Error('no such file');
  };
  await expect(text(tarArchive(entries()))).rejects.toThrow('no such file');
});
