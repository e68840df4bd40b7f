import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { ArchivedEntry } from '../../src/engine/archive/entries.ts';
import { shell, startedContainer } from './engine-fixture.ts';
import { container, engine, sharedContainer } from './shared-engine.ts';

sharedContainer();

async function contentOf(entry: ArchivedEntry): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of entry.content()) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function list(path: string) {
  const found: Record<string, string> = {};
  for await (const { path: name, type, linkTarget, size } of container.archive(path)) {
    found[name] = [type, linkTarget ?? size].join(' ');
  }
  return found;
}

describe('putting files', () => {
  test('content, mode and missing folders are as asked, in any characters', async () => {
    const odd = 'odd/na me/größe-"quoted"-$x\nnew line';
    await container.put(
      [
        { path: 'deep/er/a.sh', content: '#!/bin/sh\necho ran\n', mode: 0o755 },
        { path: '/absolute', content: Buffer.from([0, 255, 10]) },
        { path: odd, content: 'odd' },
        { path: `long/${'x'.repeat(200)}/${'y'.repeat(200)}`, content: 'long' },
        { path: 'link', linkTarget: '/etc/passwd' },
        { path: 'own', folder: true, uid: 1234, gid: 1234 },
      ],
      '/workspace',
    );
    const result = await shell(
      container,
      'deep/er/a.sh; od -An -tx1 absolute; readlink link; stat -c %u own',
    );
    expect(result.stdout.text).toBe('ran\n 00 ff 0a\n/etc/passwd\n1234\n');
    expect(await list('/workspace/odd')).toEqual({
      '': 'folder 0',
      'na me': 'folder 0',
      [odd.slice(4)]: 'file 3',
    });
    expect(Object.values(await list('/workspace/long'))).toContain('file 4');
  });

  test('works before the container is started', async () => {
    await using unstarted = await engine.createContainer({
      imageId: (await engine.findImage('offsite/base'))?.id ?? '',
      network: 'none',
      security: 'compatible',
      memoryBytes: 2 ** 27,
      cpus: 1,
      pids: 64,
      workingDir: '/workspace',
    });
    await unstarted.put([{ path: '/workspace/early', content: 'early' }]);
    await unstarted.start();
    expect((await shell(unstarted, 'cat early')).stdout.text).toBe('early');
  });

  test('a path that leads out of the folder is refused before anything is sent', async () => {
    for (const path of ['../out', 'a/../../out', '..', '', '/', 'nul\0']) {
      await expect(container.put([{ path, content: '' }], '/workspace')).rejects.toMatchObject({
        code: 'ENGINE_UNSAFE_PATH',
        kind: 'input',
      });
    }
  });
});

describe('reading files', () => {
  test('links, devices and pipes are told, never followed or read', async () => {
    await shell(
      container,
      'mkdir kinds && cd kinds && echo x > file && ln file hard && ln -s /etc/shadow soft && ln -s ../.. up && mkfifo pipe',
    );
    expect(await list('/workspace/kinds')).toEqual({
      '': 'folder 0',
      file: expect.stringMatching(/^(file 2|hardlink)/),
      hard: expect.stringMatching(/^(file 2|hardlink)/),
      pipe: 'fifo 0',
      soft: 'symlink /etc/shadow',
      up: 'symlink ../..',
    });
    expect(await list('/workspace/kinds/soft')).toEqual({ '': 'symlink /etc/shadow' });
  });

  test('a big file streams exactly, and a sparse one costs its apparent size only on the wire', async () => {
    await shell(container, 'mkdir big; head -c 3000000 /dev/urandom > big/random; truncate -s 2M big/sparse');
    const sums: Record<string, string> = {};
    for await (const entry of container.archive('/workspace/big')) {
      if (entry.type !== 'file') continue;
      const hash = createHash('sha256');
      for await (const chunk of entry.content()) hash.update(chunk);
      sums[entry.path] = hash.digest('hex');
    }
    const expected = (await shell(container, 'cd big; sha256sum random sparse')).stdout.text;
    expect(expected).toBe(`${sums.random}  random\n${sums.sparse}  sparse\n`);
  });

  test('entries that nobody reads are skipped, and stopping early ends the transfer', async () => {
    await shell(container, 'mkdir many; cd many; head -c 500000 /dev/zero > a; echo b > b');
    const names: string[] = [];
    for await (const entry of container.archive('/workspace/many')) {
      names.push(entry.path);
      if (entry.path === 'b') expect((await contentOf(entry)).toString()).toBe('b\n');
    }
    expect(names.sort()).toEqual(['', 'a', 'b']);
    for await (const _ of container.archive('/workspace/many')) break;
    expect((await shell(container, 'echo fine')).stdout.text).toBe('fine\n');
  });

  test('what does not exist is an error with its own code', async () => {
    await expect(list('/no/such')).rejects.toMatchObject({ code: 'ENGINE_NOT_FOUND' });
  });
});

test('changes tell what was added, modified and deleted against the image', async () => {
  await using fresh = await startedContainer(engine);
  await shell(
    fresh,
    'echo new > /workspace/new; echo more >> /etc/hostname.test; rm /etc/debian_version; chmod 600 /etc/issue',
  );
  const changes = await Array.fromAsync(fresh.changes());
  expect(changes).toEqual(
    expect.arrayContaining([
      { path: '/etc/debian_version', kind: 'deleted' },
      { path: '/etc/hostname.test', kind: 'added' },
      { path: '/etc/issue', kind: 'modified' },
      { path: '/workspace/new', kind: 'added' },
    ]),
  );
});
