import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type Header, type Pack, pack } from 'tar-stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { readArchive } from '../../src/engine/archive/read.ts';
import { type DockerClient, openClient } from '../../src/engine/docker/client.ts';
import { dockerPort } from '../../src/engine/docker/open.ts';

/**
 * An engine of ours that answers with whatever archive a test wants: a real one sends none that is broken.
 */
let folder: string;
let client: DockerClient;
let answer: (response: ServerResponse) => void;
const server = createServer((_request, response) => answer(response));

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'offsite-archive-'));
  server.listen(join(folder, 'engine.sock'));
  await once(server, 'listening');
  client = openClient({ kind: 'socket', path: join(folder, 'engine.sock') }, systemClock);
});
afterAll(async () => {
  client?.close();
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true, force: true });
});

async function archiveOf(
  ...entries: (Partial<Header> & { name: string; content?: string })[]
): Promise<Buffer> {
  const archive: Pack = pack();
  for (const { content = '', ...header } of entries) archive.entry(header as Header, content);
  archive.finalize();
  return buffer(archive);
}

async function read(archive: Buffer) {
  answer = (response) => response.end(archive);
  const found: Record<string, string> = {};
  for await (const entry of readArchive({ port: dockerPort(client), id: 'any' }, '/out')) {
    let text = '';
    for await (const chunk of entry.content()) text += chunk.toString();
    found[entry.path] = [entry.type, entry.linkTarget ?? text].join(' ').trim();
  }
  return found;
}

test('devices, pipes and links are told as what they are, and have no content', async () => {
  const archive = await archiveOf(
    { name: 'out', type: 'directory' },
    { name: 'out/disk', type: 'block-device', devmajor: 8 },
    { name: 'out/kmsg', type: 'character-device', devmajor: 1, devminor: 11 },
    { name: 'out/pipe', type: 'fifo' },
    { name: 'out/file', content: 'text' },
    { name: 'out/soft', type: 'symlink', linkname: '../../etc/shadow' },
    { name: 'out/hard', type: 'link', linkname: 'out/file' },
  );
  expect(await read(archive)).toEqual({
    '': 'folder',
    disk: 'device',
    kmsg: 'device',
    pipe: 'fifo',
    file: 'file text',
    soft: 'symlink ../../etc/shadow',
    hard: 'hardlink file',
  });
});

test('an absolute name stays below the folder that was asked for', async () => {
  const archive = await archiveOf(
    { name: '/out/etc/passwd', content: 'x' },
    { name: '//out//./b', content: 'y' },
  );
  expect(await read(archive)).toEqual({ 'etc/passwd': 'file x', b: 'file y' });
});

test('a name, or the target of a hard link, that leads out of the folder ends the reading', async () => {
  for (const name of ['../x', 'out/../../x', 'out/..', `${'d/'.repeat(90)}../x`]) {
    await expect(read(await archiveOf({ name })), name).rejects.toMatchObject({ code: 'ENGINE_UNSAFE_PATH' });
  }
  const link = await archiveOf({ name: 'out/x', type: 'link', linkname: 'out/../../etc/shadow' });
  await expect(read(link)).rejects.toMatchObject({ code: 'ENGINE_UNSAFE_PATH', kind: 'infrastructure' });
});

test('an archive cut anywhere is an error, however politely it ends', async () => {
  const archive = await archiveOf(
    { name: 'out/a', content: 'a'.repeat(3000) },
    { name: 'out/b', content: 'b' },
  );
  // In a header, in content, in its padding, between two entries, and before the block that ends it.
  for (const length of [0, 100, 512, 2000, 3584, 4096, 4608]) {
    await expect(read(archive.subarray(0, length)), String(length)).rejects.toMatchObject({
      code: 'ENGINE_CONNECTION',
      message: expect.stringContaining('ended in the middle'),
    });
  }
  expect(Object.keys(await read(archive))).toEqual(['a', 'b']);
});

test('a damaged header, an unknown kind of entry and records that make no sense are errors', async () => {
  const damaged = await archiveOf({ name: 'out/a' });
  damaged[3] = 0x21;
  await expect(read(damaged)).rejects.toThrow('wrong checksum');

  const unknown = await archiveOf({ name: 'out/a' });
  await expect(read(withFlag(unknown, 'S'))).rejects.toThrow('unknown type "S"');

  const records = withFlag(await archiveOf({ name: 'records', content: '99 path=x\n' }), 'x');
  await expect(read(records)).rejects.toThrow('unreadable record');
});

/** The same archive with another type in its first header. */
function withFlag(archive: Buffer, flag: string): Buffer {
  const changed = Buffer.from(archive);
  changed.write(flag, 156);
  changed.write('        ', 148);
  const sum = changed.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  changed.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return changed;
}

test("GNU's long names are read as well", async () => {
  const name = `out/${'n'.repeat(300)}`;
  const long = withFlag(await archiveOf({ name: '././@LongLink', content: `${name}\0` }), 'L');
  const file = await archiveOf({ name: 'out/short', content: 'long' });
  // Without the two empty blocks at the end of the first.
  expect(await read(Buffer.concat([long.subarray(0, -1024), file]))).toEqual({
    ['n'.repeat(300)]: 'file long',
  });
});
