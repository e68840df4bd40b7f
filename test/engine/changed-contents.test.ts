import { expect, test } from 'vitest';
import { changedContents } from '../../src/engine/changes/changed-paths.ts';
import { furtherPaths } from '../../src/engine/changes/layer-paths.ts';
import type { FilesystemChange } from '../../src/engine/port/containers.ts';

const most = { changes: 10, contents: 4 };

/** The contents of a container with these changes, by the engine's list and in its layer. */
function placesOf(reported: FilesystemChange[], layer: string[] | undefined) {
  const container = {
    async *changes() {
      yield* reported;
    },
    layerPaths: async () => layer,
  };
  return changedContents(container, { most, signal: new AbortController().signal });
}

const reported: FilesystemChange[] = [
  { path: '/etc', kind: 'modified' },
  { path: '/etc/issue', kind: 'modified' },
  { path: '/etc/motd', kind: 'deleted' },
  { path: '/opt', kind: 'modified' },
  { path: '/opt/made', kind: 'added' },
  { path: '/opt/made/d', kind: 'added' },
  { path: '/opt/made/d/file', kind: 'added' },
];
const contents = [
  { path: '/etc/issue', isAdded: false },
  { path: '/opt/made', isAdded: true },
];

test('a new folder is one content, and a folder in which something changed is none', async () => {
  expect(await placesOf(reported, undefined)).toEqual(contents);
});

test('what the layer holds and the engine does not list is a content', async () => {
  const layer = ['/etc/issue', '/etc/motd', '/etc/passwd', '/opt/made/d/file', '/opt/made/d/another'];
  expect(await placesOf(reported, layer)).toEqual([...contents, { path: '/etc/passwd', isAdded: false }]);
});

test('more changes or contents than are read give none', async () => {
  const files = (count: number) => Array.from({ length: count }, (_, index) => `/srv/d/${index}`);
  const added = (paths: string[]) => paths.map((path): FilesystemChange => ({ path, kind: 'added' }));
  const folder = added(['/srv/d']);
  expect(await placesOf([...folder, ...added(files(9))], undefined)).toHaveLength(1);
  expect(await placesOf([...folder, ...added(files(10))], undefined)).toBeUndefined();
  expect(await placesOf(added(files(5)), undefined)).toBeUndefined();
  expect(await placesOf([], files(4))).toHaveLength(4);
  expect(await placesOf([], files(5))).toBeUndefined();
  expect(await placesOf([], ['/a', furtherPaths])).toBeUndefined();
});
