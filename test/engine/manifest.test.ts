import { expect, test } from 'vitest';
import { manifestChanges, readManifest } from '../../src/engine/archive/stored-file.ts';
import { shell } from './engine-fixture.ts';
import { container, sharedContainer } from './shared-engine.ts';

sharedContainer();

test('edits, additions, deletions, renames, modes, links and types are told exactly, and nothing else', async () => {
  await shell(
    container,
    'mkdir d; for f in same edited deleted renamed mode touched d/deep; do echo $f > $f; done',
  );
  await shell(container, 'ln -s same link; ln same hard; echo type > type');
  const before = await readManifest(container.archive('/workspace'));
  await shell(
    container,
    'echo EDITED > edited; rm deleted type; mv renamed new-name; chmod +x mode; touch -d @1 touched; mkdir type;' +
      'ln -sfn d link; echo x >> d/deep; echo more > d/more',
  );
  const after = await readManifest(container.archive('/workspace'));
  expect(manifestChanges(before, after)).toEqual([
    { path: 'd/deep', kind: 'modified' },
    { path: 'd/more', kind: 'added' },
    { path: 'deleted', kind: 'deleted' },
    { path: 'edited', kind: 'modified' },
    { path: 'link', kind: 'modified' },
    { path: 'mode', kind: 'modified' },
    { path: 'new-name', kind: 'added' },
    { path: 'renamed', kind: 'deleted' },
    { path: 'type', kind: 'modified' },
  ]);
  expect(manifestChanges(after, after)).toEqual([]);
});

test('content can be read on the way, wholly or in part, and the hash is of all of it', async () => {
  await shell(
    container,
    'mkdir sums; head -c 3000000 /dev/urandom > sums/a; head -c 3000000 /dev/urandom > sums/b',
  );
  let bytes = 0;
  const manifest = await readManifest(container.archive('/workspace/sums'), async (entry) => {
    for await (const chunk of entry.content()) {
      bytes += chunk.length;
      if (entry.path === 'b') break;
    }
  });
  const sums = (await shell(container, 'cd sums; sha256sum a b')).stdout.text;
  expect(sums).toBe(`${manifest.get('a')?.sha256}  a\n${manifest.get('b')?.sha256}  b\n`);
  expect(bytes).toBeGreaterThanOrEqual(3_000_000);
});
