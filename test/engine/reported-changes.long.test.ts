import { expect, test } from 'vitest';
import { changedPaths } from '../../src/engine/changes/changed-paths.ts';
import type { Container } from '../../src/engine/container.ts';

/** A container of which the engine lists these paths as changed, and whose layer nobody can read. */
function changed(...paths: string[]): Container {
  const listed: Pick<Container, 'changes' | 'layerPaths'> = {
    async *changes() {
      for (const path of paths) yield { path, kind: 'modified' as const };
    },
    layerPaths: () => Promise.resolve(undefined),
  };
  return listed as Container;
}

const { signal } = new AbortController();

test('a folder that the engine lists for what changed below it counts only for itself, also if that is left out', async () => {
  const request = { wanted: 'every' as const, except: ['/srv/work'], signal };
  const container = changed('/srv', '/srv/work', '/srv/work/a', '/opt', '/opt/tool', '/usr');
  expect((await changedPaths(container, request)).paths).toEqual(['/opt/tool', '/usr']);
  expect((await changedPaths(changed('/srv'), request)).paths).toEqual(['/srv']);
});
