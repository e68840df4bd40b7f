import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { pack } from 'tar-stream';
import { expect, test } from 'vitest';
import { DeclaredBytes } from '../../src/engine/archive/raw-archive.ts';

interface File {
  name: string;
  size: number;
}

/** An archive of these files; names of more than 100 bytes come in records of their own. */
function archiveOf(files: readonly File[]): Promise<Buffer> {
  const archive = pack();
  for (const { name, size } of files) archive.entry({ name }, Buffer.alloc(size, 'x'));
  archive.entry({ name: 'folder', type: 'directory' });
  archive.entry({ name: 'link', type: 'symlink', linkname: 'l'.repeat(200) });
  archive.finalize();
  return buffer(archive);
}

function passes(archive: Buffer, most: number, chunkBytes: number): boolean {
  const declared = new DeclaredBytes(most, '/workspace');
  try {
    for (let at = 0; at < archive.length; at += chunkBytes)
      declared.push(archive.subarray(at, at + chunkBytes));
    return true;
  } catch (error) {
    expect(error).toMatchObject({ code: 'ENGINE_TOO_LARGE' });
    return false;
  }
}

test('files are as large as their headers say, wherever the archive is cut', async () => {
  const name = fc.oneof(fc.constantFrom('a', 'folder/b'), fc.constant('é'.repeat(120)));
  const file = fc.record({ name, size: fc.nat(3000) });
  await fc.assert(
    fc.asyncProperty(
      fc.array(file, { maxLength: 6 }),
      fc.integer({ min: 1, max: 2000 }),
      async (files, cut) => {
        const archive = await archiveOf(files);
        const sum = files.reduce((total, { size }) => total + size, 0);
        expect(passes(archive, sum, cut)).toBe(true);
        if (sum > 0) expect(passes(archive, sum - 1, cut)).toBe(false);
      },
    ),
  );
});

test('a file that is too large is known by its header, whatever follows', async () => {
  const archive = pack();
  archive.entry({ name: 'big', size: 4 * 2 ** 40 });
  const [head] = (await once(archive, 'data')) as [Buffer];
  expect(passes(head, 4 * 2 ** 40 - 1, 100)).toBe(false);
  archive.destroy();
});
