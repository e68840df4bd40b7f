import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { pack } from 'tar-stream';
import { describe, expect, test } from 'vitest';
import { nodeReadable } from '../../src/engine/archive/node-readable.ts';

describe('an archive of tar-stream as a stream of Node', () => {
  test('tells at its close that all of it was read', async () => {
    const archive = pack();
    archive.entry({ name: 'file' }, 'content');
    archive.finalize();
    const stream = nodeReadable(archive);
    const closed = once(stream, 'close');
    expect(await text(stream)).toContain('content');
    await closed;
    expect(stream.readableEnded).toBe(true);
  });

  test('ends what fills it when it is destroyed', async () => {
    const archive = pack();
    const written = new Promise<Error | null | undefined>((resolve) => {
      archive.entry({ name: 'file' }, 'x'.repeat(10_000_000), resolve);
    });
    const stream = nodeReadable(archive);
    await once(stream, 'readable');
    stream.destroy();
    expect(await written).toBeInstanceOf(Error);
    expect(stream.readableEnded).toBe(false);
  });

  test('fails as what fills it fails', async () => {
    const archive = pack();
    const read = text(nodeReadable(archive));
    archive.destroy(new Error('no such file'));
    await expect(read).rejects.toThrow('no such file');
  });
});
