import { beforeAll, expect, test } from 'vitest';
import { shell } from './engine-fixture.ts';
import { container, sharedContainer } from './shared-engine.ts';

sharedContainer();
beforeAll(async () => {
  await shell(
    container,
    `mkdir -p /own/folder; echo > /own/file; ln -s folder /own/link; ln -s nowhere /own/dangling`,
  );
});

test.each([
  ['/own/folder', 'folder'],
  ['/own/file', 'other'],
  ['/own/link', 'other'],
  ['/own/dangling', 'other'],
  ['/own/missing', 'nothing'],
] as const)('what lies at %s is told as %s, links not followed', async (path, kind) => {
  expect(await container.kindOf(path)).toBe(kind);
});

test('no look keeps its connection', async () => {
  const connections = () => process.getActiveResourcesInfo().filter((kind) => kind === 'PipeWrap').length;
  const before = connections();
  for (let look = 0; look < 40; look++) await container.kindOf('/own/folder');
  expect(connections() - before).toBeLessThan(20);
});

test('a container is older than any file that was changed in it, by the clock that files go by', async () => {
  const { stdout } = await shell(container, 'echo > /etc/passwd; stat -c "%Z" /etc/passwd /bin/sh');
  const [changed = 0, untouched = 0] = stdout.text.split('\n').map(Number);
  const madeAt = (await container.madeAt()) / 1000;
  expect(changed).toBeGreaterThanOrEqual(Math.floor(madeAt));
  expect(untouched).toBeLessThan(madeAt);
});
