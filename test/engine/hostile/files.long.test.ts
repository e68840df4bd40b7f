import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readManifest } from '../../../src/engine/archive/stored-file.ts';
import type { Container } from '../../../src/engine/container.ts';
import { shell, startedContainer } from '../engine-fixture.ts';
import { engine, sharedEngine } from '../shared-engine.ts';

sharedEngine();

async function textsOf(container: Container, path: string): Promise<Record<string, string>> {
  const texts: Record<string, string> = {};
  for await (const entry of container.archive(path)) {
    let text = '';
    for await (const chunk of entry.content()) text += chunk.toString();
    texts[entry.path] = text || `${entry.type} ${entry.linkTarget ?? ''}`.trim();
  }
  return texts;
}

test("a path through a link is the container's, whatever is there on the host", async () => {
  const marker = `/offsite-hostile-${process.pid}`;
  await using container = await startedContainer(engine);
  await shell(container, `echo 'of the container' > ${marker}; rmdir /workspace; ln -s / /workspace`);
  expect(existsSync(marker)).toBe(false);
  expect(await textsOf(container, `/workspace${marker}`)).toEqual({ '': 'of the container\n' });
});

test('writing through a workspace that a link replaced stays in the container', async () => {
  const name = `offsite-hostile-put-${process.pid}`;
  await using container = await startedContainer(engine);
  for (const target of ['/tmp', '../../../../../../tmp', '/proc/1/root/tmp', '/proc/self/root/tmp']) {
    await shell(container, `cd /; rm -rf /workspace; ln -s ${target} /workspace`);
    await container
      .put([{ path: name, content: 'put' }], '/workspace')
      .catch((error: { kind?: string }) => expect(error).toMatchObject({ kind: 'infrastructure' }));
    expect(existsSync(`/tmp/${name}`), target).toBe(false);
  }
  // A link as the last part, or on the way, is replaced or followed inside, and only there.
  await shell(container, `ln -sfn /etc /tmp/way; ln -sf /etc/hostname /tmp/last`);
  await container
    .put(
      [
        { path: `way/${name}`, content: 'put' },
        { path: 'last', content: 'put' },
      ],
      '/tmp',
    )
    .catch((error: { kind?: string }) => expect(error).toMatchObject({ kind: 'infrastructure' }));
  expect(existsSync(`/etc/${name}`)).toBe(false);
  expect((await shell(container, 'echo works')).stdout.text).toBe('works\n');
});

test('a sparse file of a gigabyte is read without being held, and takes no disk there', async () => {
  await using container = await startedContainer(engine, { diskBytes: 10_000_000 });
  await shell(container, 'mkdir sparse; truncate -s 1G sparse/file; sleep 1.1');
  const before = process.memoryUsage.rss();
  const manifest = await readManifest(container.archive('/workspace/sparse'));
  // sha256 of 2^30 zero bytes.
  expect(manifest.get('file')?.sha256).toBe(
    '49bc20df15e412a64472421e13fe86ff1c5165e18b2afccf160d4dc19fe68a14',
  );
  // Held whole it would be four times this.
  expect(process.memoryUsage.rss() - before).toBeLessThan(2 ** 28);
});
